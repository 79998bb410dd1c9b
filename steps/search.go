package steps

import (
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// defaultTopK is the number of results where default_top_k is null.
const defaultTopK = 10

// search is what VectorSearch and DocumentSearch share.
type search struct {
	id       string
	index    index.Index
	in, out  slot
	query    index.Query // without text and vector
	minScore *float64
}

func (e *Env) newSearch(s spec.FilteringStep, x spec.Index, topK *int) (*search, error) {
	base := s.Common()
	in, out, err := e.inOut(base)
	if err != nil {
		return nil, err
	}
	made := &search{id: base.ID, in: in, out: out, query: index.Query{Limit: defaultTopK}}
	if topK != nil {
		made.query.Limit = *topK
	}
	_, filters := s.MetadataFilters()
	if made.query.Filter, err = filter.Parse(filters); err != nil {
		return nil, err
	}
	made.index, err = e.openIndex(x)
	return made, err
}

// text returns the query of a row.
func (s *search) text(row *Row) (string, error) {
	v, err := s.in.read(row)
	return value.Text(v), err
}

// write sets the results of a row.
func (s *search) write(row *Row, matches []index.Match, result func(index.Match) *value.Record) {
	results := make([]any, 0, len(matches))
	for _, m := range matches {
		if s.minScore == nil || m.Score >= *s.minScore {
			results = append(results, result(m))
		}
	}
	s.out.write(row, results)
}

// highlighted returns metadata with the highlights of a match.
func highlighted(m index.Match, enabled bool) *value.Record {
	fields, _ := value.FromGo(m.Metadata).(*value.Record)
	if fields == nil {
		fields = value.NewRecord("")
	}
	if !enabled {
		return fields
	}
	passages := make([]any, len(m.Highlights))
	for i, p := range m.Highlights {
		passages[i] = p
	}
	return fields.With(fieldHighlights, passages)
}

// indexEmbedder returns the embedding model of an index.
func (e *Env) indexEmbedder(x *spec.VectorIndex) (model.Embedder, error) {
	if x.EmbeddingModel.To == nil || e.Embedder == nil {
		return nil, errors.New("the embedding model of the index is not linked")
	}
	return e.Embedder(x.EmbeddingModel.To)
}

// modeOf returns how a step searches; the validator has checked the name.
func modeOf(name string) index.Mode {
	switch strings.ToLower(name) {
	case "text":
		return index.ByText
	case "hybrid":
		return index.Hybrid
	}
	return index.ByVector
}

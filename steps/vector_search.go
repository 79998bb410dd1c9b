package steps

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// vectorSearch finds chunks in a vector index.
type vectorSearch struct {
	*search
	model model.Embedder // nil for a search by words only
}

func buildVectorSearch(s *spec.VectorSearch, env *Env) (Runner, error) {
	if s.Index.To == nil {
		return nil, errors.New("the index is not linked")
	}
	made, err := env.newSearch(s, s.Index.To, s.DefaultTopK)
	if err != nil {
		return nil, err
	}
	made.minScore = s.MinScore
	made.query.Mode, made.query.Highlight = modeOf(s.Mode), s.Highlights
	v := &vectorSearch{search: made}
	if made.query.Mode != index.ByText {
		if v.model, err = env.indexEmbedder(s.Index.To); err == nil {
			v.query.Model = v.model.Info().Identity()
		}
	}
	return v, err
}

// Process finds the chunks for the text of a row.
func (s *vectorSearch) Process(ctx context.Context, row *Row, emit Emit) error {
	q := s.query
	var err error
	if q.Text, err = s.text(row); err != nil {
		return err
	}
	if s.model != nil && strings.TrimSpace(q.Text) == "" {
		return errors.New("the query is empty: there is nothing to embed")
	}
	if s.model != nil {
		if err := index.Check(ctx, s.index, q); err != nil {
			return err
		}
		vectors, usage, err := s.model.Embed(model.ForQueries(ctx), []string{q.Text})
		if usage != (model.Usage{}) {
			Report(ctx, Event{Kind: EventUsage, Step: s.id, Session: row.Session, Row: row.Number,
				Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Model: cmp.Or(usage.Model, s.model.Info().ID)})
		}
		if err != nil {
			return err
		}
		q.Vector = vectors[0]
	}
	matches, err := index.Find(ctx, s.index, q)
	if err != nil {
		return err
	}
	s.write(row, matches, func(m index.Match) *value.Record {
		document := cmp.Or(m.Document, documentInMetadata(m), m.ID)
		chunk := value.NewRecord("RAGChunk", value.Field{Name: fieldVector}, value.Field{Name: fieldContent, Value: m.Text},
			value.Field{Name: fieldMetadata, Value: highlighted(m, s.query.Highlight)},
			value.Field{Name: fieldChunkID, Value: m.ID}, value.Field{Name: fieldDocumentID, Value: document})
		return value.NewRecord("RAGSearchResult", value.Field{Name: fieldContent, Value: chunk},
			value.Field{Name: "doc_id", Value: document}, value.Field{Name: "score", Value: m.Score})
	})
	return emit(row)
}

// documentInMetadata returns the document of an entry that another program wrote.
func documentInMetadata(m index.Match) string {
	id, _ := m.Metadata[fieldDocumentID].(string)
	return id
}

package steps

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// documentSearch finds documents in a full-text index.
type documentSearch struct{ *search }

func buildDocumentSearch(s *spec.DocumentSearch, env *Env) (Runner, error) {
	if s.Index.To == nil {
		return nil, errors.New("the index is not linked")
	}
	made, err := env.newSearch(s, s.Index.To, s.DefaultTopK)
	if err != nil {
		return nil, err
	}
	made.minScore = s.MinScore
	made.query.Mode, made.query.Args, made.query.Highlight = index.ByText, s.QueryArgs, s.Highlights
	return &documentSearch{made}, nil
}

// Process finds the documents for the text of a row.
func (s *documentSearch) Process(ctx context.Context, row *Row, emit Emit) error {
	q := s.query
	var err error
	if q.Text, err = s.text(row); err != nil {
		return err
	}
	matches, err := s.index.Search(ctx, q)
	if err != nil {
		return err
	}
	s.write(row, matches, func(m index.Match) *value.Record {
		return value.NewRecord("SearchResult", value.Field{Name: fieldContent, Value: highlighted(m, s.query.Highlight)},
			value.Field{Name: "doc_id", Value: m.ID}, value.Field{Name: "score", Value: m.Score})
	})
	return emit(row)
}

package provider

import (
	"context"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/model"
)

// echo is an Embedder that keeps the texts it receives.
type echo struct {
	name  string
	texts []string
}

func (e *echo) Info() model.Info { return model.Info{Name: e.name} }

func (e *echo) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	e.texts = texts
	return nil, model.Usage{}, nil
}

// TestWithPrefixes checks what models receive for queries and documents.
func TestWithPrefixes(t *testing.T) {
	for name, want := range map[string][2]string{
		"intfloat/multilingual-e5-small":          {"query: a", "passage: a"},
		"intfloat/multilingual-e5-large-instruct": {"Instruct: Given a question, retrieve passages that answer it\nQuery: a", "a"},
		"nomic-embed-text:latest":                 {"search_query: a", "search_document: a"},
		"BAAI/bge-base-en-v1.5":                   {"Represent this sentence for searching relevant passages: a", "a"},
		"text-embedding-3-small":                  {"a", "a"},
	} {
		e := &echo{name: name}
		for i, ctx := range []context.Context{model.ForQueries(t.Context()), t.Context()} {
			if _, _, err := withPrefixes(e).Embed(ctx, []string{"a", want[i]}); err != nil || !slices.Equal(e.texts, []string{want[i], want[i]}) {
				t.Errorf("%s receives %q, %v; want %q", name, e.texts, err, want[i])
			}
		}
	}
}

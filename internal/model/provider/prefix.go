package provider

import (
	"context"
	"strings"

	"github.com/qtype-dev/qtype/model"
)

// prefixes are what embedding models were trained to find before a query and before a document. A row is for the
// models whose names contain its name, in any case; the first that fits counts.
//
//nolint:gochecknoglobals // a constant table
var prefixes = []struct{ name, query, document string }{
	{"e5-large-instruct", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"e5-mistral", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"qwen3-embedding", "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""},
	{"e5-", "query: ", "passage: "},
	{"nomic-embed-text", "search_query: ", "search_document: "},
	{"embeddinggemma", "task: search result | query: ", "title: none | text: "},
	{"arctic-embed-l-v2", "query: ", ""},
	{"arctic-embed-m-v2", "query: ", ""},
	{"arctic-embed", "Represent this sentence for searching relevant passages: ", ""},
	{"mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-small-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-base-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-large-en", "Represent this sentence for searching relevant passages: ", ""},
}

// withPrefixes returns an Embedder that writes the prefixes of its model before the texts.
func withPrefixes(e model.Embedder) model.Embedder {
	name := strings.ToLower(e.Info().Name)
	for _, p := range prefixes {
		if strings.Contains(name, p.name) {
			return &prefixed{e, p.query, p.document}
		}
	}
	return e
}

// prefixed is an Embedder with prefixes.
type prefixed struct {
	model.Embedder
	query, document string
}

// Embed calls the model with the texts after their prefix; a text that has it stays as it is.
func (p *prefixed) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	prefix := p.document
	if model.IsForQueries(ctx) {
		prefix = p.query
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		if all[i] = text; !strings.HasPrefix(text, prefix) {
			all[i] = prefix + text
		}
	}
	return p.Embedder.Embed(ctx, all)
}

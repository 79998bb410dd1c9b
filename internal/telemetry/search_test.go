package telemetry_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// searchDocument is an application that fills and searches an index.
const searchDocument = `
id: library
models: [{type: EmbeddingModel, id: vec, provider: mock, dimensions: 8}]
indexes: [{type: VectorIndex, id: rules, name: rules, module: embedded, embedding_model: vec, args: {path: "FILE"}}]
flows:
  - id: fill
    variables: [{id: name, type: text}, {id: chunk, type: RAGChunk}]
    inputs: [name]
    outputs: [chunk]
    steps:
      - {type: Transform, id: make, set: {chunk: '{"chunk_id": name, "document_id": "d1", "content": "rule of " + name, "metadata": {"page": 7}}'}}
      - {type: IndexUpsert, id: write, index: rules, inputs: [chunk]}
  - id: find
    variables: [{id: query, type: text}, {id: found, type: "list[RAGSearchResult]"}, {id: best, type: "list[RAGSearchResult]"}]
    inputs: [query]
    outputs: [best]
    steps:
      - {type: VectorSearch, id: search, index: rules, mode: text, inputs: [query], outputs: [found]}
      - {type: Reranker, id: sort, method: rrf, num_results: 1, inputs: [found, found], outputs: [best]}
`

// TestExporter_Search checks that the spans of searches and rerankers have the documents.
func TestExporter_Search(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		c := newCollector(t)
		format := otlp
		if hidden {
			format = strings.Replace(otlp, `"}`, `", args: {capture_content: false}}`, 1)
		}
		document := strings.ReplaceAll(searchDocument, "FILE", filepath.ToSlash(filepath.Join(t.TempDir(), "rules.db")))
		app := open(t, document+strings.ReplaceAll(format, "%s", c.URL)+"\n")
		e := openExporter(t, app, nil)
		run(t.Context(), t, app, "fill", "name", "films", "books")
		run(e.Context(t.Context()), t, app, "find", "query", "films")
		e.Flush(t.Context())
		_, set := c.span(t, "step.search.process_message")
		expectAttributes(t, set, map[string]any{"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": "d1"})
		if score, ok := set["retrieval.documents.0.document.score"].(float64); !ok || score <= 0 {
			t.Errorf("the score is %v", set["retrieval.documents.0.document.score"])
		}
		_, sorted := c.span(t, "step.sort.process_message")
		expectAttributes(t, sorted, map[string]any{"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.id": "d1"})
		want := map[string]any{"retrieval.documents.0.document.content": "rule of films", "retrieval.documents.0.document.metadata": `{"page":7}`}
		for name, v := range want {
			if hidden {
				v = nil
			}
			if set[name] != v {
				t.Errorf("hidden %t: %s is %v, want %v", hidden, name, set[name], v)
			}
		}
	}
}

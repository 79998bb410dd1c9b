package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// embeddingDocument returns a flow that embeds an input of type kind.
func embeddingDocument(model, kind string) string {
	return fmt.Sprintf(`
id: search
models:
  - {type: EmbeddingModel, id: vectors, %s}
flows:
  - id: main
    variables: [{id: words, type: %s}, {id: vector, type: Embedding}]
    inputs: [words]
    outputs: [vector]
    steps:
      - {type: InvokeEmbedding, id: embed, model: vectors, inputs: [words], outputs: [vector]}
`, model, kind)
}

func TestEmbedding_Mock(t *testing.T) {
	app := openApp(t, embeddingDocument("provider: mock, dimensions: 4", "text"))
	got := runAll(t, app, "main", map[string]any{"words": "Good morning"}, map[string]any{"words": " "}, map[string]any{"words": "Good morning"})
	assertLines(t, got, got[0], "row 2: step embed: model vectors: text 1 of 1 is empty; nothing to embed", got[0])
	if !strings.HasPrefix(got[0], `{"vector":[`) || !strings.HasSuffix(got[0], `],"content":"Good morning","metadata":{}}`) {
		t.Errorf("got %s", got[0])
	}
	app = openApp(t, embeddingDocument("provider: mock, dimensions: 4", "image"))
	assertLines(t, runAll(t, app, "main", map[string]any{"words": []byte("\x89PNG\r\n")}),
		"row 1: step embed: the model vectors embeds texts only; words is of type image")
}

// TestEmbedding_SentenceModel: vectors of a real model are close for texts of the
// same meaning without a common word.
func TestEmbedding_SentenceModel(t *testing.T) {
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	at := fmt.Sprintf("provider: openai, base_url: \"http://%s/v1\", retry: {max_attempts: 1}", server.Address())
	app := openApp(t, embeddingDocument(at+", model_id: all-MiniLM-L6-v2, dimensions: 384", "text"))
	e, err := app.Embedder("vectors")
	if err != nil {
		t.Fatal(err)
	}
	vectors, usage, err := e.Embed(t.Context(), []string{"How can I get my money back?", "refund policy", "opening hours of the museum"})
	if err != nil {
		t.Fatal(err)
	}
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	if refund, museum := dot(vectors[0], vectors[1]), dot(vectors[0], vectors[2]); refund < 0.4 || museum > 0.2 || usage.Input < 12 {
		t.Errorf("refund %.3f, museum %.3f, %+v", refund, museum, usage)
	}
	got := runAll(t, app, "main", map[string]any{"words": "refund policy"})
	record, err := value.Parse(got[0])
	if err != nil {
		t.Fatal(err)
	}
	numbers, _ := record.(*value.Record).Get("vector")
	for i, x := range numbers.([]any) {
		if float32(x.(float64)) != vectors[1][i] {
			t.Fatalf("element %d of the row is %v, of the model %v", i, x, vectors[1][i])
		}
	}
	app = openApp(t, embeddingDocument(at+", model_id: all-MiniLM-L6-v2, dimensions: 1536", "text"))
	assertLines(t, runAll(t, app, "main", map[string]any{"words": "x"}),
		"row 1: step embed: model vectors: the vectors have 384 dimensions, but the document declares 1536")
	app = openApp(t, embeddingDocument(at+", model_id: text-embedding-3-large, dimensions: 3072", "text"))
	assertLines(t, runAll(t, app, "main", map[string]any{"words": "x"}),
		"row 1: step embed: model vectors: HTTP 404: The model `text-embedding-3-large` does not exist (http://"+server.Address()+"/v1)")
}

// TestEmbedding_Fallbacks: if a server is down, the fallback is called; if all are,
// the row has the error of each.
func TestEmbedding_Fallbacks(t *testing.T) {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer down.Close()
	spare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data": [{"index": 0, "embedding": [0.5, 0.25]}], "usage": {"prompt_tokens": 3}}`)
	}))
	defer spare.Close()
	const document = `id: search
models:
  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: small, dimensions: 2, base_url: "%s/v1", retry: {max_attempts: 1}, fallbacks: [elsewhere], prices: {input: 0}}
  - {type: EmbeddingModel, id: elsewhere, provider: openai, model_id: publisher/small, dimensions: 2, base_url: "%s/v1", retry: {max_attempts: 1}, prices: {input: 1000000}}
flows:
  - id: main
    variables: [{id: words, type: text}, {id: vector, type: Embedding}]
    inputs: [words]
    outputs: [vector]
    budget: {money: 2}
    steps:
      - {type: InvokeEmbedding, id: embed, model: vectors, inputs: [words], outputs: [vector]}
`
	app := openApp(t, fmt.Sprintf(document, down.URL, spare.URL))
	assertLines(t, runAll(t, app, "main", map[string]any{"words": "Hello"}), `{"vector":[0.5,0.25],"content":"Hello","metadata":{}}`)
	var over *runtime.BudgetError // three tokens at the price of the fallback exceed the budget
	for _, err := range app.Run(t.Context(), "main", slices.Values(slices.Repeat([]runtime.Input{{Values: map[string]any{"words": "Hello"}}}, 3))) {
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
	}
	if over == nil || over.What != "money" {
		t.Errorf("the price of the fallback was not counted: %v", over)
	}
	app = openApp(t, fmt.Sprintf(document, down.URL, down.URL))
	assertLines(t, runAll(t, app, "main", map[string]any{"words": "Hello"}),
		fmt.Sprintf("row 1: step embed: model vectors: HTTP 502: Bad Gateway (%[1]s/v1); its fallback elsewhere: HTTP 502: Bad Gateway (%[1]s/v1)", down.URL))
}

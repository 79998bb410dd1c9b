package splitter_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// serveEmbeddings returns the base URL of a server with OpenAI's embeddings.
func serveEmbeddings(t *testing.T, m model.Embedder) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Input []string `json:"input"`
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		vectors, _, err := m.Embed(r.Context(), asked.Input)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		type item struct {
			Embedding []float32 `json:"embedding"`
		}
		var body struct {
			Data []item `json:"data"`
		}
		for _, v := range vectors {
			body.Data = append(body.Data, item{v})
		}
		_ = json.NewEncoder(w).Encode(body) // the client reports a text that was cut
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestLlamaIndex_Semantic compares SemanticSplitterNodeParser with the same vectors, which
// are made of the words of the texts.
func TestLlamaIndex_Semantic(t *testing.T) {
	testkit.SkipWithRace(t)
	words := mock.NewEmbedder(&spec.EmbeddingModel{Model: spec.Model{ID: "vectors", Provider: "mock"}, Dimensions: 64}, mock.Options{Count: func(string) int { return 0 }})
	address := serveEmbeddings(t, words)
	var jobs []job
	for name, text := range corpus(t) {
		args := map[string]any{}
		if len(text)%2 == 0 {
			// Of 70, the limit is a distance in each tenth text, and the last bit decides in LlamaIndex whether it is above.
			args = map[string]any{"buffer_size": 3, "breakpoint_percentile_threshold": 71}
		}
		jobs = append(jobs, job{Class: "SemanticSplitterNodeParser", Args: args, Text: text, Embeddings: address, Model: "words", embedder: words, name: name})
	}
	compare(t, jobs)
}

// TestLlamaIndex_SentenceModel compares SemanticSplitterNodeParser with a real model.
func TestLlamaIndex_SentenceModel(t *testing.T) {
	testkit.SkipWithRace(t)
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	address := "http://" + server.Address() + "/v1"
	const name = "all-MiniLM-L6-v2"
	m, err := openai.NewEmbedder(openai.Config{Info: model.Info{ID: name, Provider: "openai", Name: name, Dimensions: 384}, BaseURL: address})
	testkit.Must(t, err)
	var jobs []job
	for _, path := range []string{"testdata/languages.txt", "../../docs/retrieval.md"} {
		text := testkit.ReadFile(t, path)
		text = text[:strings.LastIndexByte(text[:min(len(text), 8000)], '\n')]
		for _, percent := range []int{95, 70} {
			args := map[string]any{"breakpoint_percentile_threshold": percent}
			jobs = append(jobs, job{Class: "SemanticSplitterNodeParser", Args: args, Text: text, Embeddings: address, Model: name, embedder: m, name: path})
		}
	}
	compare(t, jobs)
}

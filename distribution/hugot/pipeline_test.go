package hugot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/hugot"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Vectors equal those of the same weights computed by numpy, also of texts that are
// hard to divide into tokens or longer than the model reads.
func TestVectors(t *testing.T) {
	folder, err := servertest.MiniLMFolder()
	servertest.Need(t, err)
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	texts := []string{
		"hello world", "How can I get my money back?", "Größe, naïve café — Ångström", "東京は日本の首都です。", "a😀b 👩‍👩‍👧 end",
		"func (e *Embedder) Info() model.Info { return e.info }", "don't stop_now: 3.14159 × 10^-7", "supercalifragilisticexpialidocious " + strings.Repeat("z", 120),
		strings.Repeat("The museum opens at nine in the morning. ", 60), "zero\u200bwidth\tand\r\nlines\x00 of control", ".",
	}
	local := embedder(t, spec.Model{Provider: "hugot", ModelID: folder})
	got, used, err := local.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	remote := embedder(t, spec.Model{Provider: "openai", ModelID: "all-MiniLM-L6-v2", BaseURL: fmt.Sprintf("http://%s/v1", server.Address())})
	want, usedThere, err := remote.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if close := model.Similarity(got[i], want[i]); close < 0.9999 {
			t.Errorf("%.40q: cosine %.5f", text, close)
		}
	}
	if used != usedThere {
		t.Errorf("used %+v, the server %+v", used, usedThere)
	}
	if !strings.HasPrefix(local.Info().Endpoint, "sha256:") {
		t.Errorf("got endpoint %q", local.Info().Endpoint)
	}
}

func TestErrors(t *testing.T) {
	folder, err := servertest.MiniLMFolder()
	servertest.Need(t, err)
	for want, m := range map[string]spec.Model{
		"model v: provider hugot has no inference_params; remove pooling": {ModelID: folder, InferenceParams: map[string]any{"pooling": "max"}},
		`model v: model_id: "none" is not a folder with an ONNX model`:    {ModelID: "none"},
	} {
		m.ID, m.Provider = "v", "hugot"
		if _, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: m, Dimensions: 384}, provider.Options{Clients: clients()}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// clients are the providers of a program with local models.
func clients() provider.Clients {
	all := provider.Core()
	all["hugot"] = hugot.Client()
	return all
}

func embedder(t *testing.T, m spec.Model) model.Embedder {
	t.Helper()
	m.ID = "v"
	e, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: m, Dimensions: 384}, provider.Options{Clients: clients()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

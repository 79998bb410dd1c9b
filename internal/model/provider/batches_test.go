package provider_test

import (
	"net/http"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/allclients"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// hasBatches reports whether calls of a model can be made in batches.
func hasBatches(m spec.ModelEntity) bool {
	has, why := provider.WhyAtOnce(m, allclients.Clients())
	return has && why == ""
}

// TestHasBatches: what is said of a model before a run is what the run does, for each provider.
func TestHasBatches(t *testing.T) {
	chat, embeds := map[string]bool{}, map[string]bool{}
	for _, row := range spec.Providers() {
		if row.Client != spec.NativeClient || row.NoChat {
			continue
		}
		base := spec.Model{Provider: row.Name, ModelID: "name", BaseURL: "http://127.0.0.1:1"}
		var made bool
		opts := provider.Options{
			Clients: allclients.Clients(),
			Getenv: func(name string) string {
				return map[string]string{"AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "shop", "GOOGLE_CLOUD_LOCATION": "europe-west4"}[name]
			},
			Key: func(string) string { return "key" },
			Batches: func(_ *spec.Model, _ wire.Batches, next *http.Client) *http.Client {
				made = true
				return next
			},
		}
		_, err := provider.New(&base, opts)
		testkit.Must(t, err)
		if chat[row.Name] = made; hasBatches(&base) != made {
			t.Errorf("%s: batches %v", row.Name, made)
		}
		if made = false; !row.Embeddings || row.Name == "aws-bedrock" { // which knows the names of its models
			continue
		}
		embedder := &spec.EmbeddingModel{Model: base}
		_, err = provider.NewEmbedder(embedder, opts)
		testkit.Must(t, err)
		if embeds[row.Name] = made; hasBatches(embedder) != made {
			t.Errorf("%s: batches of embeddings %v", row.Name, made)
		}
	}
	for name, want := range map[string][2]bool{"openai": {true, true}, "azure-openai": {true, false}, "google-ai": {true, false}, "mistral": {true, true}, "anthropic": {true, false}, "gcp-vertex": {}, "aws-bedrock": {}, "ollama": {}} {
		if got := [2]bool{chat[name], embeds[name]}; got != want {
			t.Errorf("%s: batches %v, want %v", name, got, want)
		}
	}
}

package provider_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// hasBatches reports whether calls of a model can be made in batches.
func hasBatches(m spec.ModelEntity) bool {
	has, why := provider.WhyAtOnce(m, clients(), "")
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
			Clients: clients(), AWS: awsauthtest.Builder,
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

// TestBatchPrices_Cached checks what tokens from the cache cost in a batch: in Vertex AI, Gemini has the discount of the cache in place of
// that of batches, and Claude has both. A rate of batches for them counts everywhere.
func TestBatchPrices_Cached(t *testing.T) {
	cached, day := 0.2, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	declared := &spec.Prices{Input: 2, Output: 8, CachedInput: &cached}
	for _, tt := range []struct {
		provider, name string
		declared       *spec.Prices
		want           float64 // of a million tokens from the cache, and a million others
	}{
		{"gcp-vertex", "gemini-2.5-pro", declared, 0.2 + 1},
		{"gcp-vertex", "publishers/google/models/gemini-3.8-flash", declared, 0.2 + 1},
		{"gcp-vertex", "claude-sonnet-4-6", declared, 0.1 + 1},
		{"google-ai", "gemini-3.8-flash", declared, 0.1 + 1},
		{"gcp-vertex", "claude-haiku-4-5", nil, 0.05 + 0.5},
		{"google-ai", "gemini-3.8-flash", nil, 0.0375 + 0.375},
		{"google-ai", "gemini-3-flash-preview", nil, 0.05 + 0.25},
	} {
		m := &spec.Model{Provider: tt.provider, ModelID: tt.name, Prices: tt.declared}
		used := catalogue.Usage{Input: 2e6, CachedInput: 1e6}
		got := provider.BatchPrices(m.CallPrices()).Charge(day, catalogue.TierBatch, used).Amount
		if diff := got - tt.want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s %s: %v, want %v", tt.provider, tt.name, got, tt.want)
		}
		if tt.declared != nil && m.CallPrices().Charge(day, "", used).Amount != 2.2 {
			t.Errorf("%s %s: a call at once has another price", tt.provider, tt.name)
		}
	}
}

package providers_test

import (
	"math"
	"testing"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// TestParams_AgreeWithValidation: the client of each provider refuses the inference_params
// that validation reports, and takes the others.
func TestParams_AgreeWithValidation(t *testing.T) {
	set := map[string]string{"AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com", "AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "shop", "GOOGLE_CLOUD_LOCATION": "europe-west4",
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
	for _, row := range spec.Providers() {
		if len(row.KeyEnv) > 0 && row.Key != spec.CloudIdentity {
			set[row.KeyEnv[0]] = "key"
		}
	}
	getenv := func(name string) string { return set[name] }
	params := []map[string]any{nil, {"temperature": 0.5}, {"temperature": math.Inf(1)}, {"top_p": 1}, {"max_tokens": 8}}
	for _, name := range []string{"generationConfig", "generation_config", "inferenceConfig", "additional_model_request_fields", "options"} {
		params = append(params, map[string]any{name: "x"}, map[string]any{name: []any{}}, map[string]any{name: nil}, map[string]any{name: map[string]any{"top_k": 1}})
	}
	for p := modelparams.ChatCompletions; p <= modelparams.Local; p++ {
		for _, name := range p.Reserved() {
			params = append(params, map[string]any{name: "x"})
		}
	}
	refused := 0
	for _, row := range spec.Providers() {
		if row.Client != spec.NativeClient && row.Client != spec.BridgeClient {
			continue
		}
		for _, m := range modelsOf(row) {
			for _, given := range params {
				m.Base().InferenceParams = given
				want := modelparams.Check(m)
				var err error
				switch m := m.(type) {
				case *spec.Model:
					_, err = provider.New(m, provider.Options{Clients: providers.Clients(), AWS: awssdk.Builder, Getenv: getenv})
				case *spec.EmbeddingModel:
					_, err = provider.NewEmbedder(m, provider.Options{Clients: providers.Clients(), AWS: awssdk.Builder, Getenv: getenv})
				}
				if (err == nil) != (want == nil) {
					t.Errorf("%s %T %s with %v: validation: %v; a run: %v", row.Name, m, m.Base().ModelID, given, want, err)
				}
				if err != nil {
					refused++
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d were refused", refused)
	}
}

// modelsOf returns models of a provider for each protocol by which it can be called.
func modelsOf(row spec.Provider) []spec.ModelEntity {
	var all []spec.ModelEntity
	base := spec.Model{ID: "m", Provider: row.Name, ModelID: "small"}
	if !row.NoChat {
		claude, responses := base, base
		claude.ModelID, responses.API = "claude-sonnet", "responses"
		all = append(all, &base, &claude)
		if row.Name == "openai" || row.Name == "azure-openai" {
			all = append(all, &responses)
		}
	}
	if row.Embeddings {
		names := []string{"text-embedding"}
		if len(row.EmbeddingProtocols) > 0 {
			names = []string{"amazon.titan-embed-text-v2:0", "cohere.embed-english-v3"}
		}
		for _, name := range names {
			m := &spec.EmbeddingModel{Model: base, Dimensions: 3}
			m.ModelID = name
			all = append(all, m)
		}
	}
	return all
}

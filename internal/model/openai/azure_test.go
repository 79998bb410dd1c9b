package openai_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

func TestAzure_Contract(t *testing.T) {
	for version, c := range map[string]struct{ path, key string }{
		"":           {"/openai/v1/chat/completions", "Api-Key"},
		"2024-10-21": {"/openai/deployments/some-model/chat/completions?api-version=2024-10-21", "Authorization"},
	} {
		t.Run(version, func(t *testing.T) {
			modeltest.Run(t, modeltest.Wire{
				Open: func(to modeltest.Target) (model.Chat, error) {
					return openai.NewAzure(openai.AzureConfig{Config: to.Config(), Bearer: c.key == "Authorization", Deployment: "some-model", Version: version})
				},
				Whole: wholeAnswer, Stream: streamedAnswer, Closing: 3, Kind: "text/event-stream", Reasoning: true,
				Parse: func(t testing.TB, r modeltest.Request) modeltest.Conversation {
					if r.Path != c.path {
						t.Errorf("called %s", r.Path)
					}
					h := modeltest.Conversation{Key: strings.TrimPrefix(r.Header.Get(c.key), "Bearer "), Temperature: r.Body["temperature"], MaxTokens: r.Body["max_tokens"]}
					h.Stream, _ = r.Body["stream"].(bool)
					h.ReadBody(r.Body)
					return h
				},
				ErrorBody: func(status int, message string) string {
					return modeltest.JSON(object{"error": object{"message": message, "code": "some_code", "status": status}})
				},
				ErrorRecord: "data: " + modeltest.JSON(object{"error": object{"message": "it broke", "code": "500"}}) + "\n\n",
			})
		})
	}
}

func TestAzureEmbedder(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":3}}`))
	target := modeltest.Target{Info: model.Info{ID: "v", Name: "text-embedding-3-small", Dimensions: 2}, URL: s.URL, Key: "k", HTTP: s.Client()}
	e, err := openai.NewAzureEmbedder(openai.AzureConfig{Config: target.Config(), Deployment: "vectors", Version: "preview"})
	if err != nil {
		t.Fatal(err)
	}
	vectors, used, err := e.Embed(t.Context(), []string{"a"})
	sent := s.Requests()[0]
	if err != nil || len(vectors) != 1 || used.Input != 3 || sent.Path != "/openai/v1/embeddings?api-version=preview" ||
		modeltest.JSON(sent.Body) != `{"dimensions":2,"input":["a"],"model":"vectors"}` || sent.Header.Get("Api-Key") != "k" {
		t.Errorf("got %v, %v, %v; sent %+v", vectors, used, err, sent)
	}
}

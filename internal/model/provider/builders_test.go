package provider_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Each provider is called at its path, with the key of its environment variable.
func TestNativeProviders(t *testing.T) {
	bodies := map[string]string{
		"/v1/messages": `{"type":"message","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn"}`,
		"/api/chat":    `{"message":{"content":"Hello."},"done":true}`,
		"/v1beta/models/gemini-2.5:generateContent":    `{"candidates":[{"content":{"parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`,
		"/gw/v1beta/models/gemini-2.5:generateContent": `{"candidates":[{"content":{"parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`,
		"/gw/v1/models/gemini-2.5:generateContent":     `{"candidates":[{"content":{"parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`,
		"/v1/chat/completions":                         answer,
		"/v1/embeddings":                               `{"data":[{"embedding":[1,2]}]}`,
		"/v1beta/openai/embeddings":                    `{"data":[{"embedding":[1,2]}]}`,
	}
	var called []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		if agent := r.Header.Get("User-Agent"); !strings.HasPrefix(agent, "qtype/") {
			t.Errorf("User-Agent %q", agent)
		}
		called = append(called, strings.TrimSpace(r.URL.Path+" "+key))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, bodies[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	bearer := spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("tok")}}
	host := strings.TrimPrefix(s.URL, "http://")
	for name, tt := range map[string]struct {
		model spec.Model
		env   []string
		want  string
	}{
		"anthropic":                {spec.Model{Provider: "anthropic"}, []string{"ANTHROPIC_API_KEY", " k1\n", "ANTHROPIC_BASE_URL", s.URL}, "/v1/messages k1"},
		"anthropic by a token":     {spec.Model{Provider: "anthropic", BaseURL: s.URL, Auth: bearer}, []string{"ANTHROPIC_API_KEY", "k1"}, "/v1/messages Bearer tok"},
		"a gateway without a key":  {spec.Model{Provider: "anthropic", BaseURL: s.URL}, nil, "/v1/messages"},
		"google-ai":                {spec.Model{Provider: "google-ai", ModelID: "gemini-2.5", BaseURL: s.URL}, []string{"GOOGLE_API_KEY", "k3", "GEMINI_API_KEY", "k2"}, "/v1beta/models/gemini-2.5:generateContent k2"},
		"google-ai, the other key": {spec.Model{Provider: "google-ai", ModelID: "gemini-2.5", BaseURL: s.URL}, []string{"GOOGLE_API_KEY", "k3"}, "/v1beta/models/gemini-2.5:generateContent k3"},
		"google-ai behind a path":  {spec.Model{Provider: "google-ai", ModelID: "gemini-2.5", BaseURL: s.URL + "/gw"}, []string{"GEMINI_API_KEY", "k2"}, "/gw/v1beta/models/gemini-2.5:generateContent k2"},
		"google-ai with a version": {spec.Model{Provider: "google-ai", ModelID: "gemini-2.5", BaseURL: s.URL + "/gw/v1/"}, []string{"GEMINI_API_KEY", "k2"}, "/gw/v1/models/gemini-2.5:generateContent k2"},
		"mistral":                  {spec.Model{Provider: "mistral", BaseURL: s.URL + "/v1"}, []string{"MISTRAL_API_KEY", "k4"}, "/v1/chat/completions Bearer k4"},
		"ollama":                   {spec.Model{Provider: "ollama"}, []string{"OLLAMA_HOST", host}, "/api/chat"},
		"ollama with an address":   {spec.Model{Provider: "ollama"}, []string{"OLLAMA_HOST", s.URL, "OLLAMA_API_KEY", "k5"}, "/api/chat Bearer k5"},
		"ollama in the document":   {spec.Model{Provider: "ollama", BaseURL: s.URL}, []string{"OLLAMA_HOST", "127.0.0.1:1"}, "/api/chat"},
	} {
		t.Run(name, func(t *testing.T) {
			called = nil
			callModel(t, &tt.model, provider.Options{Getenv: env(tt.env...), HTTP: s.Client()})
			if d := cmp.Diff([]string{tt.want}, called); d != "" {
				t.Error(d)
			}
		})
	}
	for name, want := range map[string]string{"ollama": "/v1/embeddings", "google-ai": "/v1beta/openai/embeddings Bearer k2", "mistral": "/v1/embeddings Bearer k4", "openai": "/v1/embeddings"} {
		called = nil
		m := &spec.EmbeddingModel{Model: spec.Model{ID: "v", Provider: name, ModelID: "x", BaseURL: s.URL}, Dimensions: 2}
		if name == "openai" || name == "mistral" {
			m.BaseURL += "/v1"
		}
		e, err := provider.NewEmbedder(m, provider.Options{Getenv: env("GEMINI_API_KEY", "k2", "MISTRAL_API_KEY", "k4"), HTTP: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Embed(t.Context(), []string{"a"}); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{want}, called); d != "" {
			t.Error(d)
		}
	}
	if _, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: spec.Model{ID: "v", Provider: "anthropic"}}, provider.Options{Getenv: env()}); err == nil ||
		err.Error() != "model v: the provider anthropic has no embedding models" {
		t.Errorf("got %v", err)
	}
}

// callModel calls a model, whose server answers "Hello.".
func callModel(t *testing.T, declared *spec.Model, opts provider.Options) {
	t.Helper()
	declared.ID = "m"
	m, err := provider.New(declared, opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
	if err != nil || got.Message.Text() != "Hello." || m.Info().Mock {
		t.Fatalf("got %v, %v", got, err)
	}
}

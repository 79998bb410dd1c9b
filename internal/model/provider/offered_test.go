package provider_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

// TestListOffered calls a server with the list of each protocol.
func TestListOffered(t *testing.T) {
	for name, c := range map[string]struct {
		provider, path, header, answer string
		want                           []provider.Offered
		err                            string
	}{
		"openai":      {"openai", "/v1/models", "Authorization", `{"data":[{"id":"gpt-6-sol","shutdown_date":"2027-12-01"},{"id":"gpt-5.5"}]}`, []provider.Offered{{ID: "gpt-6-sol", Shutdown: "2027-12-01"}, {ID: "gpt-5.5"}}, ""},
		"mistral":     {"mistral", "/v1/models", "Authorization", `{"data":[{"id":"mistral-large-4"}]}`, []provider.Offered{{ID: "mistral-large-4"}}, ""},
		"anthropic":   {"anthropic", "/v1/models", "X-Api-Key", `{"data":[{"id":"claude-opus-5-5"}]}`, []provider.Offered{{ID: "claude-opus-5-5"}}, ""},
		"google-ai":   {"google-ai", "/v1/models", "X-Goog-Api-Key", `{"models":[{"name":"models/gemini-3.8-flash"}]}`, []provider.Offered{{ID: "gemini-3.8-flash"}}, ""},
		"ollama":      {"ollama", "/v1/api/tags", "Authorization", `{"models":[{"name":"llama3.2:latest"}]}`, []provider.Offered{{ID: "llama3.2:latest"}}, ""},
		"odd dates":   {"openai", "/v1/models", "Authorization", `{"data":[{"id":"a","shutdown_date":"soon"},{"id":"b","shutdown_date":"2099-01-02T00:00:00Z"}]}`, []provider.Offered{{ID: "a"}, {ID: "b", Shutdown: "2099-01-02"}}, ""},
		"odd entries": {"openai", "/v1/models", "Authorization", `{"data":[7,{"id":{}},{"id":"gpt-5.5","shutdown_date":7}]}`, []provider.Offered{{}, {}, {ID: "gpt-5.5"}}, ""},
		"a page":      {"openai", "/v1/models", "Authorization", `<html><title>Sign in</title>`, nil, "the answer is a web page, not a list of models: Sign in"},
		"no list":     {"aws-bedrock", "", "", `{}`, nil, provider.ErrNoList.Error()},
		"wrong key":   {"openai", "/v1/models", "Authorization", "401", nil, "HTTP 401: the key secret-key"},
		"other value": {"openai", "/v1/models", "Authorization", `[]`, nil, "the answer is not a list of models"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != c.path || !strings.Contains(r.Header.Get(c.header), "secret-key") {
					t.Errorf("request %s, %s %q", r.URL.Path, c.header, r.Header.Get(c.header))
				}
				if c.answer == "401" {
					http.Error(w, "the key secret-key is wrong", http.StatusUnauthorized)
					return
				}
				_, _ = w.Write([]byte(c.answer))
			}))
			defer s.Close()
			m := &spec.Model{ID: "m", Provider: c.provider, ModelID: "x", BaseURL: s.URL + "/v1", Auth: spec.Ref[spec.Auth]{To: &spec.APIKeyAuth{APIKey: spec.NewSecret("secret-key")}}}
			got, err := provider.ListOffered(t.Context(), m, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: func(string) string { return "" }})
			switch {
			case name == "wrong key":
				if err == nil || !strings.Contains(err.Error(), "HTTP 401") || strings.Contains(err.Error(), "secret-key") {
					t.Errorf("error = %v", err)
				}
			case c.err != "":
				if err == nil || err.Error() != c.err {
					t.Errorf("error = %v, want %s", err, c.err)
				}
			case err != nil || !slices.Equal(got, c.want):
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

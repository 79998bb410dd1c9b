package provider_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

// auth makes a reference to an auth with the id a.
func auth(to spec.Auth) spec.Ref[spec.Auth] { return spec.Ref[spec.Auth]{ID: "a", To: to} }

// Models of clouds are called at the path of their account, with a signature or a token of
// their identity.
func TestCloudProviders(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	var called []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization") + r.Header.Get("Api-Key")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(r.URL.Path, "computeMetadata"), strings.Contains(r.URL.Path, "/oauth2/"):
			_, _ = io.WriteString(w, `{"access_token":"of-cloud","expires_in":3600}`)
			return
		case strings.HasSuffix(r.URL.Path, "/responses"):
			_, _ = io.WriteString(w, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello."}]}]}`)
		case strings.HasPrefix(r.URL.Path, "/model/"):
			key, _, _ = strings.Cut(key, "/20") // without the date
			_, _ = io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"Hello."}]}},"stopReason":"end_turn"}`)
		case strings.Contains(r.URL.Path, ":generateContent"):
			_, _ = io.WriteString(w, `{"candidates":[{"content":{"parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`)
		case strings.Contains(r.URL.Path, ":rawPredict"):
			_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn"}`)
		default:
			_, _ = io.WriteString(w, answer)
		}
		called = append(called, strings.TrimSpace(r.URL.RequestURI()+" "+key))
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	keys := &spec.AWSAuth{AccessKeyID: spec.NewSecret("AKIA"), SecretAccessKey: spec.NewSecret("s"), Region: "eu-west-1"}
	entra := &spec.AzureAuth{TenantID: "t", ClientID: "c", ClientSecret: spec.NewSecret("s"), AuthorityHost: s.URL}
	token := &spec.BearerTokenAuth{Token: spec.NewSecret("tok")}
	for name, tt := range map[string]struct {
		model spec.Model
		env   []string
		want  string
	}{
		"bedrock":               {spec.Model{Provider: "aws-bedrock", ModelID: "us.amazon.nova-lite-v1:0", BaseURL: s.URL, Auth: auth(keys)}, nil, "/model/us.amazon.nova-lite-v1%3A0/converse AWS4-HMAC-SHA256 Credential=AKIA"},
		"bedrock, environment":  {spec.Model{Provider: "aws-bedrock", ModelID: "m"}, []string{"AWS_ACCESS_KEY_ID", "AKIB", "AWS_SECRET_ACCESS_KEY", "s", "AWS_REGION", "us-east-1", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", s.URL}, "/model/m/converse AWS4-HMAC-SHA256 Credential=AKIB"},
		"bedrock, all services": {spec.Model{Provider: "aws-bedrock", ModelID: "m", Auth: auth(keys)}, []string{"AWS_ENDPOINT_URL", s.URL}, "/model/m/converse AWS4-HMAC-SHA256 Credential=AKIA"},
		"bedrock, API key":      {spec.Model{Provider: "aws-bedrock", ModelID: "m", BaseURL: s.URL}, []string{"AWS_BEARER_TOKEN_BEDROCK", "k"}, "/model/m/converse Bearer k"},
		"gemini":                {spec.Model{Provider: "gcp-vertex", ModelID: "gemini-3.8-flash", BaseURL: s.URL, Auth: auth(&spec.VertexAuth{ProjectID: "shop", Region: "europe-west4"})}, []string{"GCE_METADATA_HOST", host}, "/v1/projects/shop/locations/europe-west4/publishers/google/models/gemini-3.8-flash:generateContent Bearer of-cloud"},
		"claude on Vertex":      {spec.Model{Provider: "gcp-vertex", ModelID: "claude-sonnet-5-5", InferenceParams: map[string]any{"max_tokens": 100}, Auth: auth(token)}, []string{"GOOGLE_VERTEX_BASE_URL", s.URL, "GOOGLE_CLOUD_PROJECT", "shop"}, "/v1/projects/shop/locations/us-central1/publishers/anthropic/models/claude-sonnet-5-5:rawPredict Bearer tok"},
		"openai, responses":     {spec.Model{Provider: "openai", API: "responses", ModelID: "gpt-5.4-mini", BaseURL: s.URL + "/v1"}, nil, "/v1/responses"},
		"azure, responses":      {spec.Model{Provider: "azure-openai", API: "responses", ModelID: "gpt-5.4-mini", BaseURL: s.URL, APIVersion: "preview"}, []string{"AZURE_OPENAI_API_KEY", "k"}, "/openai/v1/responses?api-version=preview k"},
		"azure, dated":          {spec.Model{Provider: "azure-openai", API: "responses", ModelID: "gpt-5.4-mini", BaseURL: s.URL, APIVersion: "2025-04-01-preview"}, []string{"AZURE_OPENAI_API_KEY", "k"}, "/openai/responses?api-version=2025-04-01-preview k"},
		"azure, API key":        {spec.Model{Provider: "azure-openai", ModelID: "gpt-5.4-mini", Deployment: "chat"}, []string{"AZURE_OPENAI_ENDPOINT", s.URL, "AZURE_OPENAI_API_KEY", "k"}, "/openai/v1/chat/completions k"},
		"azure, Entra ID":       {spec.Model{Provider: "azure-openai", ModelID: "gpt-5.4-mini", Deployment: "chat", APIVersion: "2024-10-21", BaseURL: s.URL, Auth: auth(entra)}, nil, "/openai/deployments/chat/chat/completions?api-version=2024-10-21 Bearer of-cloud"},
		"azure, token":          {spec.Model{Provider: "azure-openai", ModelID: "gpt-5.4-mini", BaseURL: s.URL, Auth: auth(token)}, nil, "/openai/v1/chat/completions Bearer tok"},
	} {
		t.Run(name, func(t *testing.T) {
			called = nil
			callModel(t, &tt.model, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env(tt.env...), HTTP: s.Client()})
			if d := cmp.Diff([]string{tt.want}, called); d != "" {
				t.Error(d)
			}
		})
	}
}

// Addresses depend on the region; without one, the offline mock replaces the model.
func TestCloudProviders_Addresses(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte(`{"type":"service_account","project_id":"p","private_key":"k"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := offline(&spec.Model{ID: "fake", Provider: "mock", Rules: []*spec.MockRule{{Text: "Hello."}}})
	for want, m := range map[string]spec.Model{
		"https://bedrock-runtime.eu-west-1.amazonaws.com":     {Provider: "aws-bedrock", Auth: auth(&spec.AWSAuth{Region: "eu-west-1"})},
		"https://bedrock-runtime.cn-north-1.amazonaws.com.cn": {Provider: "aws-bedrock", Auth: auth(&spec.AWSAuth{Region: "cn-north-1"})},
		"https://europe-west4-aiplatform.googleapis.com":      {Provider: "gcp-vertex", Auth: auth(&spec.VertexAuth{ServiceAccountFile: file, Region: "europe-west4"})},
		"https://aiplatform.googleapis.com":                   {Provider: "gcp-vertex", Auth: auth(&spec.VertexAuth{ServiceAccountFile: file, Region: "global"})},
		"":                                                    {Provider: "aws-bedrock", Offline: fake},
	} {
		m.ID = "m"
		made, err := provider.New(&m, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
		if err != nil || made.Info().Endpoint != want {
			t.Errorf("got %v, %v; want %s", made, err, want)
		}
	}
}

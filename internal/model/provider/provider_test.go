package provider_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const answer = `{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`

// server sends the same response to every call and records the credentials.
func server(t *testing.T) (*httptest.Server, func() []string) {
	t.Helper()
	keys := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s, func() (list []string) {
		for len(keys) > 0 {
			list = append(list, <-keys)
		}
		return list
	}
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func keyAuth(id, key, host string) spec.Ref[spec.Auth] {
	return spec.Ref[spec.Auth]{ID: id, To: &spec.APIKeyAuth{AuthBase: spec.AuthBase{ID: id}, APIKey: spec.NewSecret(key), Host: host}}
}

func TestNew_BaseURLAndKey(t *testing.T) {
	s, keys := server(t)
	here := s.URL + "/v1"
	bearer := spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("tok")}}
	tests := map[string]struct {
		model spec.Model
		env   []string
		want  string
	}{
		"base URL of the document":      {spec.Model{BaseURL: here}, []string{"OPENAI_BASE_URL", "http://127.0.0.1:1"}, ""},
		"base URL of the environment":   {spec.Model{}, []string{"OPENAI_BASE_URL", here}, ""},
		"earlier name of the variable":  {spec.Model{}, []string{"OPENAI_API_BASE", here}, ""},
		"both names of the variable":    {spec.Model{}, []string{"OPENAI_BASE_URL", here, "OPENAI_API_BASE", "http://127.0.0.1:1"}, ""},
		"both of the environment":       {spec.Model{}, []string{"OPENAI_BASE_URL", here, "OPENAI_API_KEY", " k1\n"}, "Bearer k1"},
		"key's own host":                {spec.Model{Auth: keyAuth("a", "k2", here)}, []string{"OPENAI_BASE_URL", "http://127.0.0.1:1", "OPENAI_API_KEY", "k1"}, "Bearer k2"},
		"document before the key":       {spec.Model{Auth: keyAuth("a", "k2", "http://127.0.0.1:1"), BaseURL: here}, nil, "Bearer k2"},
		"bearer token":                  {spec.Model{Auth: bearer, BaseURL: here}, nil, "Bearer tok"},
		"empty key of a base_url":       {spec.Model{Auth: keyAuth("a", "", ""), BaseURL: here}, []string{"OPENAI_API_KEY", "k1"}, ""},
		"offline is not asked for then": {spec.Model{BaseURL: here, Offline: offline(&spec.Model{ID: "fake", Provider: "mock"})}, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.model.ID, tt.model.Provider = "gpt", "openai"
			m, err := provider.New(&tt.model, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env(tt.env...), HTTP: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{tt.want}, keys()); d != "" {
				t.Error(d)
			}
			if m.Info().Mock {
				t.Error("it is a mock")
			}
		})
	}
}

// A key that is too short to be found in texts is a warning.
func TestNew_ShortKey(t *testing.T) {
	for key, want := range map[string]string{"k": "model gpt: the key of OPENAI_API_KEY has 1 character: it is too short to be hidden in logs", "key-1234": ""} {
		got := ""
		_, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai"}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env("OPENAI_API_KEY", key), Warn: func(line string) { got += line }})
		if err != nil || got != want {
			t.Errorf("%q: warning %q, %v", key, got, err)
		}
	}
}

// A bad address of the environment is reported with the name of its variable.
func TestNew_BaseURLOfEnvironment(t *testing.T) {
	for variable, value := range map[string]string{"OPENAI_BASE_URL": "localhost:1234/v1", "OPENAI_API_BASE": "http://"} {
		var warnings []string
		opts := provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env(variable, value, "OPENAI_API_KEY", "key-1234"), Warn: func(line string) { warnings = append(warnings, line) }}
		_, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai"}, opts)
		if want := "model gpt: " + variable + " must be an http or https address, such as http://localhost:11434/v1"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if got := strings.Join(warnings, "\n"); (got != "") != (variable == "OPENAI_API_BASE") || got != "" && got != "model gpt: OPENAI_API_BASE is the earlier name of OPENAI_BASE_URL and is used as such; set OPENAI_BASE_URL" {
			t.Errorf("%s: warnings %q", variable, got)
		}
	}
}

// A run refuses models that the provider does not have.
func TestNew_KindOfModel(t *testing.T) {
	_, err := provider.New(&spec.Model{ID: "gpt", Provider: "hugot", ModelID: "m"}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
	if err == nil || err.Error() != "model gpt: the provider hugot has no chat models" {
		t.Error(err)
	}
	_, err = provider.NewEmbedder(&spec.EmbeddingModel{Model: spec.Model{ID: "v", Provider: "aws-bedrock", ModelID: "amazon.nova-lite-v1:0"}}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
	if err == nil || !strings.Contains(err.Error(), "model v: amazon.nova-lite-v1:0 is not an embedding model of aws-bedrock that is supported") {
		t.Error(err)
	}
}

func offline(m *spec.Model) spec.Ref[spec.ModelEntity] {
	if m == nil {
		return spec.Ref[spec.ModelEntity]{ID: "fake"}
	}
	return spec.Ref[spec.ModelEntity]{ID: "fake", To: m}
}

func TestNew_Errors(t *testing.T) {
	secret := spec.Ref[spec.Auth]{ID: "a", To: &spec.APIKeyAuth{AuthBase: spec.AuthBase{ID: "a"}, APIKey: spec.Secret{Ref: &spec.SecretReference{SecretName: "prod/key"}}}}
	tests := []struct {
		model spec.Model
		want  string
	}{
		{spec.Model{Provider: "openai"}, "model gpt: no credentials: set OPENAI_API_KEY, give it an auth, or a base_url"},
		{spec.Model{Provider: "anthropic"}, "model gpt: no credentials: set ANTHROPIC_API_KEY, give it an auth, or a base_url"},
		{spec.Model{Provider: "google-ai"}, "model gpt: no credentials: set GEMINI_API_KEY, give it an auth, or a base_url"},
		{spec.Model{Provider: "mistral"}, "model gpt: no credentials: set MISTRAL_API_KEY, give it an auth, or a base_url"},
		{spec.Model{Provider: "aws-bedrock"}, "model gpt: no credentials: no AWS region: set region in the auth, or AWS_REGION"},
		{spec.Model{Provider: "gcp-vertex"}, "model gpt: no credentials: no Google Cloud project: set project_id in the auth, or GOOGLE_CLOUD_PROJECT"},
		{spec.Model{Provider: "azure-openai"}, "model gpt: no credentials: set AZURE_OPENAI_ENDPOINT, or base_url to the endpoint of the resource"},
		{spec.Model{Provider: "langchaingo:cohere"}, "model gpt: provider langchaingo:cohere is not available yet"},
		{spec.Model{Provider: "openai", Auth: keyAuth("a", "", "")}, "model gpt: auth a holds an empty key"},
		{spec.Model{Provider: "openai", Auth: keyAuth("a", "top\x00secret", "")}, "model gpt: auth a contains a character that is not allowed in a header"},
		{spec.Model{Provider: "openai", Auth: spec.Ref[spec.Auth]{ID: "a"}}, "model gpt: auth names a, which is not an auth"},
		{spec.Model{Provider: "openai", Auth: secret}, "model gpt: auth a: secret prod/key needs a secret_manager"},
		{spec.Model{Provider: "openai", Auth: spec.Ref[spec.Auth]{ID: "a", To: &spec.AWSAuth{AuthBase: spec.AuthBase{ID: "a"}}}},
			"model gpt: provider openai takes an auth of type api_key or bearer_token; a is aws"},
		{spec.Model{Provider: "openai", Offline: offline(&spec.Model{ID: "fake", Provider: "openai"})}, "model gpt: offline must name a mock model; fake is of provider openai"},
		{spec.Model{Provider: "openai", Offline: offline(nil)}, "model gpt: offline names fake, which is not a model"},
		{spec.Model{Provider: "openai", BaseURL: "localhost:11434"}, "model gpt: base_url must be an http or https address, such as http://localhost:11434/v1"},
		{spec.Model{Provider: "mock", Rules: []*spec.MockRule{{Match: "("}}}, "mock model gpt: rule 1: set exactly one of text, tool_calls, error and echo"},
	}
	for _, tt := range tests {
		tt.model.ID = "gpt"
		_, err := provider.New(&tt.model, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
		if err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	if _, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai"}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env("OPENAI_API_KEY", "top\nsecret")}); err == nil ||
		err.Error() != "model gpt: the environment variable OPENAI_API_KEY contains a character that is not allowed in a header" {
		t.Errorf("got %v", err)
	}
	var missing *provider.CredentialsError
	if _, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai"}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()}); !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
	var unknown *spec.NotAvailableError
	if _, err := provider.New(&spec.Model{ID: "gpt", Provider: "langchaingo:cohere"}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()}); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

func TestOffline(t *testing.T) {
	fake := &spec.Model{ID: "fake", Provider: "mock", Rules: []*spec.MockRule{{Text: "Hello."}}}
	m, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai", ModelID: "gpt-5.4-mini", Offline: offline(fake)}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env("OPENAI_API_KEY", " ")})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Info{ID: "fake", Provider: "mock", Name: "fake", Encoding: "o200k_base", ContextWindow: 272_000, Mock: true, Replaces: "gpt"}
	if d := cmp.Diff(want, m.Info()); d != "" {
		t.Error(d)
	}
	got, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
	if err != nil || got.Message.Text() != "Hello." {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestOffline_Embedder: the mock of either kind makes vectors of the declared length, and costs nothing.
func TestOffline_Embedder(t *testing.T) {
	for _, fake := range []spec.ModelEntity{&spec.Model{ID: "fake", Provider: "mock"}, &spec.EmbeddingModel{Model: spec.Model{ID: "fake", Provider: "mock"}, Dimensions: 8}} {
		m := &spec.EmbeddingModel{Model: spec.Model{ID: "e", Provider: "openai", ModelID: "text-embedding-3-small", Offline: spec.Ref[spec.ModelEntity]{ID: "fake", To: fake}}, Dimensions: 8}
		made, err := provider.NewEmbedder(m, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		vectors, usage, err := made.Embed(t.Context(), []string{"a bicycle"})
		if err != nil || len(vectors) != 1 || len(vectors[0]) != 8 || usage.Input == 0 || usage.Cost != 0 {
			t.Errorf("%T: %d vectors, usage %+v, %v", fake, len(vectors), usage, err)
		}
		if info := made.Info(); !info.Mock || info.Replaces != "e" {
			t.Errorf("%T: got %+v", fake, info)
		}
	}
}

func TestNew_MockRetriesOnlyIfDeclared(t *testing.T) {
	fake := &spec.Model{ID: "fake", Provider: "mock", Rules: []*spec.MockRule{{Error: "no", Status: 500}}}
	for retry, want := range map[*spec.RetryPolicy]int{nil: 0, {MaxAttempts: 3, InitialDelay: 1, MaxDelay: 1}: 3} {
		fake.Retry = retry
		m, err := provider.New(fake, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Call(t.Context(), m, model.Request{}, nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Attempts != want {
			t.Errorf("got %v", err)
		}
	}
}

// TestNew_MockTimeout: timeout ends the call of a slow mock, also if nothing else is declared.
func TestNew_MockTimeout(t *testing.T) {
	fake := &spec.Model{ID: "fake", Provider: "mock", Timeout: spec.Duration(time.Millisecond), Rules: []*spec.MockRule{{Text: "never", Delay: spec.Duration(time.Hour)}}}
	m, err := provider.New(fake, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = model.Call(t.Context(), m, model.Request{}, nil); err == nil || !strings.Contains(err.Error(), "no complete answer within 1ms") {
		t.Errorf("got %v", err)
	}
}

// TestNew_MockBreaker: the circuit breaker of a mock opens if it is declared, and fails no call otherwise.
func TestNew_MockBreaker(t *testing.T) {
	for _, breaker := range []*spec.CircuitBreaker{nil, {Failures: 2, OpenFor: spec.Duration(time.Hour)}} {
		fake := &spec.Model{ID: "fake", Provider: "mock", Rules: []*spec.MockRule{{Error: "no", Status: 500}}, CircuitBreaker: breaker}
		m, err := provider.New(fake, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		for call := 1; call <= 30; call++ {
			_, err := model.Call(t.Context(), m, model.Request{}, nil)
			var e *model.Error
			if want := breaker != nil && call > 2; !errors.As(err, &e) || (e.Code == model.CircuitOpen) != want {
				t.Errorf("breaker %v, call %d: %v", breaker, call, err)
			}
		}
	}
}

func TestErrors_RedactKeys(t *testing.T) {
	const key = "sk-proj-very-secret-0123456789"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"wrong: `+r.Header.Get("Authorization")+`"}}`)
	}))
	t.Cleanup(s.Close)
	for name, auth := range map[string]spec.Ref[spec.Auth]{"OPENAI_API_KEY": {}, "my_key": keyAuth("my_key", key, "")} {
		m, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai", BaseURL: s.URL, Auth: auth}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env("OPENAI_API_KEY", key), HTTP: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Call(t.Context(), m, model.Request{}, nil)
		if err == nil || strings.Contains(err.Error(), "very-secret") || !strings.Contains(err.Error(), "rejected the credential "+name) {
			t.Errorf("got %v", err)
		}
	}
}

// TestNew_OwnServerWithoutPath checks that the provider's own server, named without a path,
// is called at the provider's own address, and so is the host of a key at another one.
func TestNew_OwnServerWithoutPath(t *testing.T) {
	for host, want := range map[string]string{
		"https://api.openai.com":    "https://api.openai.com/v1/chat/completions",
		"https://API.openai.com/":   "https://api.openai.com/v1/chat/completions",
		"https://api.openai.com/v2": "https://api.openai.com/v2/chat/completions",
		"https://models.example":    "https://models.example/v1/chat/completions",
		"https://models.example/x":  "https://models.example/x/chat/completions",
	} {
		var called string
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			called = r.URL.String()
			return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody, Request: r}, nil
		})
		m, err := provider.New(&spec.Model{ID: "gpt", Provider: "openai", Auth: keyAuth("a", "k", host)}, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env(), HTTP: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
		if err == nil || called != want {
			t.Errorf("%s: called %s, want %s (%v)", host, called, want, err)
		}
	}
}

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clients are those of the core, and the one of Bedrock, which needs no other module.
func clients() provider.Clients {
	all := provider.Core()
	all["aws-bedrock"] = bedrock.Part()
	return all
}

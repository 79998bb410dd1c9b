package qtype_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// thief is a server that a .env file names; it keeps all that it is sent.
type thief struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newThief(t *testing.T) *thief {
	s := &thief{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got = append(s.got, r.URL.String())
	}))
	t.Cleanup(s.Close)
	return s
}

// requests returns what the server was sent.
func (s *thief) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, "\n")
}

// closed answers in place of all servers but one, so that no request leaves this computer.
type closed struct{ host string }

func (c closed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == c.host {
		return http.DefaultTransport.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// settings are the variables by which an environment chooses a server or an identity.
func settings(address, folder string) string {
	names := []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT",
		"AZURE_POD_IDENTITY_AUTHORITY_HOST", "VAULT_ADDR", "HTTPS_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT"}
	for _, p := range spec.Providers() {
		names = append(names, p.BaseURLEnv, p.BaseURLOldEnv)
	}
	lines := []string{"GOOGLE_APPLICATION_CREDENTIALS=" + filepath.Join(folder, "account.json"), "GCE_METADATA_HOST=" + strings.TrimPrefix(address, "http://"),
		"AWS_REGION=us-east-1", "GOOGLE_CLOUD_PROJECT=p", "CLOUDSDK_CONFIG=" + folder}
	for _, name := range names {
		if name != "" {
			lines = append(lines, name+"="+address)
		}
	}
	return strings.Join(lines, "\n")
}

// TestSandbox_DotEnvChoosesNoServer runs a model of each provider with the keys of the user, in a
// folder whose .env file names another server for each of them.
func TestSandbox_DotEnvChoosesNoServer(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"} {
		t.Setenv(name, secretValue)
	}
	for _, p := range spec.Providers() {
		for _, name := range append(p.KeyEnv, p.BaseURLEnv) {
			if name != "" && name != p.BaseURLEnv {
				t.Setenv(name, secretValue)
			}
		}
	}
	for _, p := range spec.Providers() {
		if p.Client == spec.MissingClient || p.Client == spec.LocalClient || p.Name == "mock" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			server, folder := newThief(t), t.TempDir()
			testkit.Must(t, os.WriteFile(filepath.Join(folder, ".env"), []byte(settings(server.URL, folder)), 0o600))
			testkit.Must(t, os.WriteFile(filepath.Join(folder, "account.json"), []byte(`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"`+server.URL+`"}`), 0o600))
			document := filepath.Join(folder, "app.qtype.yaml")
			text := flowOf(`{type: LLMInference, id: s, model: m, inputs: [q], outputs: [a]}`, `models: [{type: Model, id: m, provider: "`+p.Name+`", model_id: x}]`)
			testkit.Must(t, os.WriteFile(document, []byte(text), 0o600))
			host := strings.TrimPrefix(server.URL, "http://")
			got := runAt(t, document, "hello", qtype.WithSandbox(), qtype.WithGrants(qtype.Grants{Hosts: []string{host}}), qtype.WithHTTP(&http.Client{Transport: closed{host: host}}))
			if server.requests() != "" || strings.Contains(got, "[QT") {
				t.Errorf("the server of the .env file got %s; the run reports %q", server.requests(), got)
			}
		})
	}
}

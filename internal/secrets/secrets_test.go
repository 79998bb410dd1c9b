package secrets_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/secrets"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// services answers as Google Cloud Secret Manager, Azure Key Vault and Vault do, with the
// services that issue tokens for them.
type services struct {
	*httptest.Server
	requests atomic.Int32 // for secrets
	failing  atomic.Int32 // requests that fail before the first answer
}

func serve(t *testing.T) *services {
	t.Helper()
	s := &services{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
	body := map[string]string{}
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.URL.Path {
	case "/google/token", "/tenant/oauth2/v2.0/token":
		answer(http.StatusOK, `{"access_token":"granted","expires_in":3599,"token_type":"Bearer"}`)
		return
	case "/v1/auth/approle/login":
		if body["role_id"] != "shop" || body["secret_id"] != "sign-in" {
			answer(http.StatusBadRequest, `{"errors":["invalid role or secret ID"]}`)
			return
		}
		answer(http.StatusOK, `{"auth":{"client_token":"hvs.granted","lease_duration":3600}}`)
		return
	}
	s.requests.Add(1)
	if s.failing.Add(-1) >= 0 {
		answer(http.StatusServiceUnavailable, `{"errors":["Vault is sealed"]}`)
		return
	}
	if r.Header.Get("Authorization") != "Bearer granted" && !strings.HasPrefix(r.Header.Get("X-Vault-Token"), "hvs.") {
		answer(http.StatusForbidden, `{"errors":["permission denied"]}`)
		return
	}
	known := map[string]string{
		"/v1/projects/p/secrets/key/versions/latest:access": `{"name":"projects/1/secrets/key/versions/2","payload":{"data":"Z29vZ2xl","dataCrc32c":"1"}}`,
		"/v1/projects/p/secrets/key/versions/1:access":      `{"payload":{"data":"b2xk"}}`,
		"/v1/projects/q/secrets/key/versions/latest:access": `{"payload":{"data":"b3RoZXI="}}`,
		"/v1/projects/p/secrets/odd/versions/latest:access": `{"payload":{"data":"%"}}`,
		"/secrets/key":              `{"value":"azure","id":"https://shop.vault.azure.net/secrets/key/1"}`,
		"/secrets/key/1":            `{"value":"old"}`,
		"/secrets/disabled":         `{"id":"x"}`,
		"/v1/secret/data/shop/key":  `{"request_id":"r","data":{"data":{"value":"vault"},"metadata":{"version":1}}}`,
		"/v1/secret/data/shop/keys": `{"data":{"data":{"openai":"sk-1","n":3},"metadata":{"version":1}}}`,
		"/v1/secret/data/deleted":   `{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z"}}}`,
		"/v1/kv/key":                `{"data":{"value":"version 1"}}`,
	}
	found, ok := known[r.URL.Path]
	switch {
	case r.URL.Path == "/secrets/forbidden":
		answer(http.StatusForbidden, `{"error":{"code":"Forbidden","message":"The user does not have secrets get permission"}}`)
	case !ok:
		answer(http.StatusNotFound, `{"errors":[]}`)
	default:
		answer(http.StatusOK, found)
	}
}

func TestRead_Services(t *testing.T) {
	s := serve(t)
	login := testkit.WriteFile(t, "login.json", `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"`+s.URL+`/google/token"}`)
	env := map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": login, "GOOGLE_CLOUD_PROJECT": "p", "VAULT_ADDR": s.URL, "VAULT_TOKEN": "hvs.env"}
	google := &spec.GoogleSecretManager{ID: "m", BaseURL: s.URL}
	azure := &spec.AzureKeyVault{ID: "m", VaultURL: s.URL, Auth: spec.Ref[*spec.AzureAuth]{To: &spec.AzureAuth{TenantID: "tenant", ClientID: "c", ClientSecret: spec.NewSecret("s"), AuthorityHost: s.URL}}}
	vault := &spec.VaultSecretManager{ID: "m", Mount: "secret", KVVersion: 2}
	role := &spec.VaultSecretManager{ID: "m", Address: s.URL + "/", Mount: "secret", KVVersion: 2, RoleID: "shop", SecretID: spec.NewSecret("sign-in")}
	for _, c := range []struct {
		manager   spec.SecretManager
		name, key string
		want      string // the secret, or a part of the error
	}{
		{google, "key", "", "google"},
		{google, "key/versions/1", "", "old"},
		{google, "projects/q/secrets/key", "", "other"},
		{google, "none", "", "/v1/projects/p/secrets/none/versions/latest:access: the secret manager has no such secret"},
		{google, "odd", "", "the response has no secret"},
		{google, "../x", "", "the name must be NAME, NAME/versions/VERSION"},
		{azure, "key", "", "azure"},
		{azure, "key/1", "", "old"},
		{azure, "forbidden", "", "HTTP 403: The user does not have secrets get permission"},
		{azure, "disabled", "", "the response has no secret"},
		{azure, "key?x", "", "the name must be NAME or NAME/VERSION"},
		{vault, "shop/key", "", "vault"},
		{vault, "shop/keys", "openai", "sk-1"},
		{vault, "shop/keys", "n", "key n of secret shop/keys is not a string"},
		{vault, "shop/keys", "", `{"openai":"sk-1","n":3}`},
		{vault, "deleted", "", "the response has no secret"},
		{vault, "../sys/seal", "", "the name must be a path"},
		{role, "shop/key", "", "vault"},
		{&spec.VaultSecretManager{ID: "m", Mount: "kv", KVVersion: 1}, "key", "", "version 1"},
		{&spec.VaultSecretManager{ID: "m", Mount: "secret", KVVersion: 2, RoleID: "shop", SecretID: spec.NewSecret("wrong")}, "shop/key", "", "HTTP 400: invalid role or secret ID"},
		{&spec.VaultSecretManager{ID: "m", Mount: "secret", KVVersion: 2, Token: spec.NewSecret("wrong")}, "shop/key", "", "HTTP 403: permission denied"},
	} {
		t.Run(fmt.Sprintf("%s %s %s", spec.TypeName(c.manager), c.name, c.key), func(t *testing.T) {
			r, err := secrets.New(c.manager, secrets.Options{AWS: awsauthtest.Builder, Getenv: func(name string) string { return env[name] }})
			testkit.Must(t, err)
			got, err := r.Read(t.Context(), spec.SecretReference{SecretName: c.name, Key: c.key})
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRead_Again: a service that is not available for a moment is asked again, and the
// secret is kept.
func TestRead_Again(t *testing.T) {
	s := serve(t)
	s.failing.Store(1)
	r, err := secrets.New(&spec.VaultSecretManager{ID: "m", Address: s.URL, Mount: "secret", KVVersion: 2, Token: spec.NewSecret("hvs.x")}, secrets.Options{AWS: awsauthtest.Builder, Getenv: func(string) string { return "" }})
	testkit.Must(t, err)
	for range 3 {
		got, err := r.Read(t.Context(), spec.SecretReference{SecretName: "shop/key"})
		if err != nil || got != "vault" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestNew_Errors(t *testing.T) {
	noEnv := func(string) string { return "" }
	for want, m := range map[string]spec.SecretManager{
		"secret manager m: no address of Vault: set address, or VAULT_ADDR":           &spec.VaultSecretManager{ID: "m"},
		"no credentials of Vault: set token or role_id and secret_id, or VAULT_TOKEN": &spec.VaultSecretManager{ID: "m", Address: "https://vault.example"},
		"the credentials of the secret manager cannot be its secret t":                &spec.VaultSecretManager{ID: "m", Address: "https://vault.example", Token: spec.Secret{Ref: &spec.SecretReference{SecretName: "t"}}},
		"vault_url is not an address":                                                 &spec.AzureKeyVault{ID: "m", VaultURL: "shop"},
	} {
		if _, err := secrets.New(m, secrets.Options{AWS: awsauthtest.Builder, Getenv: noEnv}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestServices_OfficialClient: the client of Vault for Python reads the same secret from
// the server of these tests, so that both speak one protocol.
func TestServices_OfficialClient(t *testing.T) {
	python := os.Getenv("QTYPE_HVAC")
	if python == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_HVAC to a python with hvac", servertest.ErrMissing))
	}
	out, err := exec.Command(python, "testdata/vault_client.py", serve(t).URL).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "vault version 1" {
		t.Errorf("got %q, %v", out, err)
	}
}

package googleauth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/spec"
)

// authorize returns the header that an identity adds.
func authorize(t *testing.T, id *googleauth.Identity) (string, error) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://models.example/", http.NoBody)
	err := id.Authorize(req)
	return req.Header.Get("Authorization"), err
}

func write(t *testing.T, path string, content any) string {
	t.Helper()
	raw, isText := content.(string)
	if !isText {
		encoded, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(encoded)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokenServer issues tokens by the form of a request: grant type and the id of the client.
func tokenServer(t *testing.T, key *rsa.PublicKey) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		name := r.Form.Get("client_id") + r.Form.Get("subject_token")
		if assertion := r.Form.Get("assertion"); assertion != "" {
			token, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.RS256})
			var claims map[string]any
			if err != nil || token.Claims(key, &claims) != nil {
				http.Error(w, `{"error":"invalid_grant","error_description":"wrong signature"}`, http.StatusBadRequest)
				return
			}
			name = fmt.Sprint(claims["iss"], " ", claims["scope"])
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token of %s","expires_in":3600,"token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`, name)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestIdentity(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	server := tokenServer(t, &key.PublicKey)
	folder := t.TempDir()
	account := map[string]string{"type": "service_account", "client_email": "robot@shop", "private_key": private, "token_uri": server, "project_id": "shop-file"}
	serviceFile := write(t, filepath.Join(folder, "service.json"), account)
	person := map[string]string{"type": "authorized_user", "client_id": "person", "client_secret": "s", "refresh_token": "r", "quota_project_id": "quota", "token_uri": server}
	subject := write(t, filepath.Join(folder, "subject"), "subject-token")
	federated := map[string]any{"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": server, "credential_source": map[string]string{"file": subject}}
	gcloud := filepath.Join(folder, "gcloud")
	write(t, filepath.Join(gcloud, "configurations", "config_work"), "[core]\naccount = robot@shop\nproject = shop-work\n\n[compute]\nregion = europe-west3\n")
	write(t, filepath.Join(gcloud, "configurations", "config_alone"), "[core]\naccount = other@shop\n")
	write(t, filepath.Join(gcloud, "legacy_credentials", "robot@shop", "adc.json"), account)
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || !strings.HasPrefix(r.URL.Path, "/computeMetadata/v1/instance/service-accounts/default/token") {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, `{"access_token":"token of machine","expires_in":3599,"token_type":"Bearer"}`)
	}))
	t.Cleanup(machine.Close)
	const robot = "Bearer token of robot@shop https://www.googleapis.com/auth/cloud-platform"
	for name, c := range map[string]struct {
		auth *spec.VertexAuth
		env  map[string]string
		want string // the header, project and region, or the error
	}{
		"service account":  {&spec.VertexAuth{ServiceAccountFile: serviceFile}, map[string]string{"GOOGLE_CLOUD_LOCATION": "europe-west4"}, robot + " shop-file europe-west4"},
		"document first":   {&spec.VertexAuth{ServiceAccountFile: serviceFile, ProjectID: "p", Region: "global"}, map[string]string{"GOOGLE_CLOUD_PROJECT": "other"}, robot + " p global"},
		"of the variable":  {nil, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": serviceFile}, robot + " shop-file us-central1"},
		"federated":        {nil, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": write(t, filepath.Join(folder, "federated.json"), federated), "GOOGLE_CLOUD_PROJECT": "p"}, "Bearer token of subject-token p us-central1"},
		"configuration":    {&spec.VertexAuth{ProfileName: "work"}, nil, robot + " shop-work europe-west3"},
		"without a login":  {&spec.VertexAuth{ProfileName: "alone"}, nil, "auth a: the configuration alone of gcloud has no credentials for other@shop; run gcloud auth login"},
		"name of project":  {&spec.VertexAuth{ProfileName: "my-project"}, map[string]string{"GCE_METADATA_HOST": strings.TrimPrefix(machine.URL, "http://")}, "Bearer token of machine my-project us-central1"},
		"machine":          {nil, map[string]string{"GCE_METADATA_HOST": strings.TrimPrefix(machine.URL, "http://"), "GOOGLE_CLOUD_PROJECT": "p"}, "Bearer token of machine p us-central1"},
		"no machine":       {nil, map[string]string{"GCE_METADATA_HOST": "127.0.0.1:1", "GOOGLE_CLOUD_PROJECT": "p"}, "no token: cannot reach http://127.0.0.1:1"},
		"missing file":     {&spec.VertexAuth{ServiceAccountFile: filepath.Join(folder, "none.json")}, nil, "none.json: no such file or directory"},
		"missing variable": {nil, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": filepath.Join(folder, "none.json")}, "cannot read the file of GOOGLE_APPLICATION_CREDENTIALS: no such file or directory"},
		"no key":           {nil, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": write(t, filepath.Join(folder, "nokey.json"), `{"type":"service_account"}`)}, "the file of GOOGLE_APPLICATION_CREDENTIALS is a service account without private_key"},
		"not JSON":         {&spec.VertexAuth{ServiceAccountFile: subject}, nil, "is not a JSON file with credentials"},
		"other kind":       {&spec.VertexAuth{ServiceAccountFile: write(t, filepath.Join(folder, "kind.json"), `{"type":"other","project_id":"p"}`)}, nil, "kind.json"},
		"login of program": {nil, map[string]string{"CLOUDSDK_CONFIG": filepath.Dir(write(t, filepath.Join(folder, "adc", "application_default_credentials.json"), person)), "NO": "1"}, "quota us-central1"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.auth != nil {
				c.auth.ID = "a"
			}
			env := map[string]string{"CLOUDSDK_CONFIG": gcloud}
			for k, v := range c.env {
				env[k] = v
			}
			id, err := googleauth.New(c.auth, func(name string) string { return env[name] })
			got := ""
			if err == nil {
				project, _ := id.Project()
				if got = project + " " + id.Region(); env["NO"] == "" { // Google's server
					var header string
					header, err = authorize(t, id)
					got = header + " " + got
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, "PRIVATE") {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
	if _, err := mustNew(t).Project(); err == nil || !strings.Contains(err.Error(), "set project_id in the auth, or GOOGLE_CLOUD_PROJECT") {
		t.Errorf("got %v", err)
	}
}

func mustNew(t *testing.T) *googleauth.Identity {
	t.Helper()
	id, err := googleauth.New(nil, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return id
}

package azureauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/spec"
)

// serve issues tokens as Entra ID, an App Service and a virtual machine do. A token is what
// was requested.
func serve(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		f := r.Form
		switch {
		case r.URL.Path == "/tenant/oauth2/v2.0/token" && f.Get("client_secret") == "wrong-secret-0123":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"invalid_client","error_description":"AADSTS7000215: wrong-secret-0123"}`)
		case r.URL.Path == "/tenant/oauth2/v2.0/token":
			_, _ = fmt.Fprintf(w, `{"access_token":"%s %s%s %s","expires_in":3599,"token_type":"Bearer"}`, f.Get("client_id"), f.Get("client_secret"), f.Get("client_assertion"), f.Get("scope"))
		case r.URL.Path == "/msi" && r.Header.Get("X-IDENTITY-HEADER") == "h" && f.Get("api-version") == "2019-08-01":
			_, _ = fmt.Fprintf(w, `{"access_token":"app %s","expires_on":"4102444800","resource":"x"}`, f.Get("resource"))
		case r.URL.Path == "/metadata/identity/oauth2/token" && r.Header.Get("Metadata") == "true":
			_, _ = fmt.Fprintf(w, `{"access_token":"machine %s%s","expires_in":"3599"}`, f.Get("client_id"), f.Get("resource"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestIdentity(t *testing.T) {
	url := serve(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("federated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := &spec.AzureAuth{TenantID: "tenant", ClientID: "app", ClientSecret: spec.NewSecret("secret"), AuthorityHost: url}
	for name, c := range map[string]struct {
		auth *spec.AzureAuth
		env  map[string]string
		want string
	}{
		"secret":            {secret, map[string]string{"AZURE_CLIENT_ID": "other", "AZURE_FEDERATED_TOKEN_FILE": file}, "Bearer app secret https://vault.azure.net/.default"},
		"environment":       {nil, map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "app", "AZURE_CLIENT_SECRET": "s2", "AZURE_AUTHORITY_HOST": url + "/"}, "Bearer app s2 https://vault.azure.net/.default"},
		"workload identity": {nil, map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "app", "AZURE_FEDERATED_TOKEN_FILE": file, "AZURE_AUTHORITY_HOST": url}, "Bearer app federated https://vault.azure.net/.default"},
		"file of the auth":  {&spec.AzureAuth{TenantID: "tenant", ClientID: "app", FederatedTokenFile: file, AuthorityHost: url}, map[string]string{"AZURE_CLIENT_SECRET": "s2"}, "Bearer app federated https"},
		"App Service":       {nil, map[string]string{"IDENTITY_ENDPOINT": url + "/msi", "IDENTITY_HEADER": "h"}, "Bearer app https://vault.azure.net"},
		"virtual machine":   {&spec.AzureAuth{ClientID: "assigned-"}, map[string]string{"AZURE_POD_IDENTITY_AUTHORITY_HOST": url}, "Bearer machine assigned-https://vault.azure.net"},
		"wrong secret":      {&spec.AzureAuth{TenantID: "tenant", ClientID: "app", ClientSecret: spec.NewSecret("wrong-secret-0123"), AuthorityHost: url}, nil, "auth a: no token: " + url + "/tenant/oauth2/v2.0/token: HTTP 401: AADSTS7000215: ***"},
		"no tenant":         {&spec.AzureAuth{ClientID: "app", ClientSecret: spec.NewSecret("s")}, nil, "auth a: tenant_id and client_id are needed"},
		"no file":           {&spec.AzureAuth{TenantID: "tenant", ClientID: "app", FederatedTokenFile: file + "x"}, nil, "auth a: no token: cannot read the federated token"},
		"no secret manager": {&spec.AzureAuth{ClientSecret: spec.Secret{Ref: &spec.SecretReference{SecretName: "s"}}}, nil, "auth a: secret s needs a secret_manager"},
		"no machine":        {nil, map[string]string{"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:1"}, "the Azure credentials of the environment: no token: cannot reach"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.auth != nil {
				c.auth.ID = "a"
			}
			id, err := azureauth.New(c.auth, azureauth.Options{Getenv: func(name string) string { return c.env[name] }})
			got := ""
			if err == nil {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://shop.vault.azure.net/", http.NoBody)
				err = id.Authorize(req, "https://vault.azure.net")
				got = req.Header.Get("Authorization")
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

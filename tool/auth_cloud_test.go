package tool_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// TestAuth_Clouds: calls carry the signature or the token of a cloud's identity.
func TestAuth_Clouds(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/google/token":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"google","expires_in":3599,"token_type":"Bearer"}`)
		case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
			_, _ = fmt.Fprintf(w, `{"access_token":"azure %s","expires_in":3599,"token_type":"Bearer"}`, r.FormValue("scope"))
		default:
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(s.Close)
	login := testkit.WriteFile(t, "login.json", `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"`+s.URL+`/google/token"}`)
	env := map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": login}
	keys := &spec.AWSAuth{AccessKeyID: spec.NewSecret("AKIDEXAMPLE"), SecretAccessKey: spec.NewSecret("key"), Region: "eu-west-1"}
	azure := &spec.AzureAuth{TenantID: "tenant", ClientID: "c", ClientSecret: spec.NewSecret("s"), AuthorityHost: s.URL}
	for _, c := range []struct {
		auth                 spec.Auth
		path, audience, want string
	}{
		{keys, "/x", "", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/eu-west-1/execute-api/aws4_request"},
		{keys, "/x", "es", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/eu-west-1/es/aws4_request"},
		{&spec.VertexAuth{}, "/x", "", "Bearer google"},
		{azure, "/x", "", "Bearer azure " + s.URL + "/.default"},
		{azure, "/x", "api://shop", "Bearer azure api://shop/.default"},
	} {
		declared := &spec.APITool{Endpoint: s.URL + c.path, Method: http.MethodPost, BodyFormat: "json", Auth: spec.Ref[spec.Auth]{ID: "a", To: c.auth}, AuthAudience: c.audience, AllowPrivate: true}
		declared.ID, declared.Name = "call", "call"
		declared.Inputs = []*spec.Variable{{ID: "text", Type: spec.Type{Name: "text"}}}
		called, err := tool.NewAPI(declared, tool.Options{AWS: awsauthtest.Builder, Getenv: func(name string) string { return env[name] }})
		testkit.Must(t, err)
		got, err := called.Call(t.Context(), map[string]any{"text": "ü"})
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%T %s: got %v, %v, want %s", c.auth, c.audience, got, err, c.want)
		}
	}
}

// TestAuth_CloudErrors: an identity that is incomplete is an error before the first call.
func TestAuth_CloudErrors(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	for want, auth := range map[string]spec.Auth{
		"no AWS region":                      &spec.AWSAuth{AccessKeyID: spec.NewSecret("a"), SecretAccessKey: spec.NewSecret("b")},
		"tenant_id and client_id are needed": &spec.AzureAuth{ClientID: "c", ClientSecret: spec.NewSecret("s")},
	} {
		d := &spec.APITool{Endpoint: "https://api.example/x", Auth: spec.Ref[spec.Auth]{ID: "a", To: auth}}
		d.ID, d.Name = "f", "f"
		if _, err := tool.NewAPI(d, tool.Options{AWS: awsauthtest.Builder, Getenv: func(string) string { return "" }}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

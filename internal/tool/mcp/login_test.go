package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// TestLogin_Refused: servers and documents with which no sign-in is possible. The sign-in
// itself is tested with the command.
func TestLogin_Refused(t *testing.T) {
	t.Setenv("QTYPE_HOME", t.TempDir())
	called := 0
	open := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer open.Close()
	client := func(change func(*spec.OAuth2LoginAuth)) *spec.MCPTool {
		auth := &spec.OAuth2LoginAuth{AuthBase: spec.AuthBase{ID: "reader"}}
		change(auth)
		d := &spec.MCPTool{URL: open.URL, AllowPrivate: true, Auth: spec.Ref[spec.Auth]{ID: "reader", To: auth}}
		d.ID = "library"
		return d
	}
	plain := func(*spec.OAuth2LoginAuth) {}
	private := client(plain)
	private.AllowPrivate = false
	granted := trust.Grants{Hosts: []string{strings.TrimPrefix(open.URL, "http://")}}
	for name, c := range map[string]struct {
		tool   *spec.MCPTool
		policy *trust.Policy
		want   string
	}{
		"a document from an address":     {client(plain), &trust.Policy{Level: trust.Untrusted, Base: "https://documents.example", Grants: granted}, "use the sign-in of the user at " + open.URL},
		"a sandbox":                      {client(plain), &trust.Policy{Level: trust.Sandboxed, Grants: granted}, "use the sign-in of the user at " + open.URL},
		"a private address":              {private, nil, "private address; set allow_private: true"},
		"a server without tokens":        {client(plain), nil, "requires no sign-in: it answered HTTP 200, not 401"},
		"a secret without an issuer":     {client(func(a *spec.OAuth2LoginAuth) { a.ClientID, a.ClientSecret = "shop", spec.NewSecret("secret") }), nil, "has a client_secret without an issuer"},
		"a port that cannot be listened": {client(func(a *spec.OAuth2LoginAuth) { a.RedirectPort = 1 << 17 }), nil, "the browser cannot return to port 131072"},
	} {
		t.Run(name, func(t *testing.T) {
			called = 0
			_, err := mcp.Login(t.Context(), c.tool, tool.Options{Policy: c.policy}, func(address string) { t.Errorf("the person is sent to %s", address) })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if c.policy == nil {
				return
			}
			if _, err := mcp.New(c.tool, mcp.Env{Options: tool.Options{Policy: c.policy}, Getenv: os.Getenv}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a tool: got %v, want %s", err, c.want)
			}
			if called > 0 {
				t.Errorf("the server was called %d times", called)
			}
		})
	}
}

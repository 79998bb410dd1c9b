package mcpserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if buildFolder != "" {
			_ = os.RemoveAll(buildFolder)
		}
		os.Exit(status)
	}))
}

// openApp makes the application of testdata, with memories in RAM.
func openApp(t *testing.T, opts ...qtype.Option) *runtime.App {
	t.Helper()
	app, err := qtype.Open(t.Context(), "testdata/app.qtype.yaml", append(opts, qtype.WithEphemeral())...)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	return app
}

// serveApp returns the server of an application.
func serveApp(t *testing.T, app *runtime.App, opts mcpserver.ApplicationOptions) *mcpserver.Server {
	t.Helper()
	s, err := mcpserver.Application(app, opts)
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// serveHTTP serves over HTTP and returns the address. The header Test-Principal is the
// name of the caller, Test-Role a role.
func serveHTTP(t *testing.T, s *mcpserver.Server) string {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := access.Principal{Name: r.Header.Get("Test-Principal"), Roles: r.Header.Values("Test-Role")}
		s.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), p)))
	}))
	t.Cleanup(h.Close)
	t.Cleanup(s.Close) // before h.Close, which waits for open streams
	return h.URL
}

// caller sends the name of the caller with each request.
type caller struct {
	name string
	next http.RoundTripper
}

func (c *caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Test-Principal", c.name)
	return c.next.RoundTrip(r)
}

// connect connects a client of a protocol version over HTTP.
func connect(t *testing.T, url, name, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: &caller{name, transport}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// result is a tool's result as tests compare it.
type result struct {
	Text       string
	Structured any
	IsError    bool
}

// callTool calls a tool.
func callTool(t *testing.T, s *sdk.ClientSession, name string, args any) result {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	testkit.Must(t, err)
	return resultOf(r)
}

func resultOf(r *sdk.CallToolResult) result {
	got := result{Structured: r.StructuredContent, IsError: r.IsError}
	if len(r.Content) > 0 {
		if c, ok := r.Content[0].(*sdk.TextContent); ok {
			got.Text = c.Text
		}
	}
	return got
}

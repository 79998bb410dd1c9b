package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer is a server of testdata/app.qtype.yaml.
type testServer struct {
	*httptest.Server
	own *server.Server
	t   testing.TB
}

// openApp returns the application of a document, with memories in RAM.
func openApp(t testing.TB, path string, opts ...qtype.Option) *runtime.App {
	t.Helper()
	app, err := qtype.Open(context.Background(), path, append([]qtype.Option{qtype.WithEphemeral()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return app
}

func serve(t testing.TB) *testServer {
	return serveApp(t, openApp(t, "testdata/app.qtype.yaml"), server.Options{})
}

func serveApp(t testing.TB, app *runtime.App, o server.Options) *testServer {
	t.Helper()
	s := server.New(app, o)
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		testkit.CloseServer(h)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return &testServer{h, s, t}
}

// reply is a response that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request. headers are pairs of name and value.
func (s *testServer) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = []string{headers[i+1]} // not in the canonical form
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, strings.TrimSuffix(string(raw), "\n")}
}

func (s *testServer) post(path, body string, headers ...string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, path, body, headers...)
}

// into parses the body of a reply.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

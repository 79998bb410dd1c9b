package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/telemetry/otlp"
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

// serveApp serves an application with all parts of telemetry.
func serveApp(t testing.TB, app *runtime.App, o server.Options) *testServer {
	t.Helper()
	o.Telemetry = telemetry.Parts{OTLP: otlp.Encode, Metrics: func(process bool) telemetry.Metrics { return metrics.New(process) }}
	return serveCore(t, app, o)
}

func serveCore(t testing.TB, app *runtime.App, o server.Options) *testServer {
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
	r := testkit.Request(s.t, method, s.URL+path, body, headers...)
	return reply{r.Status, r.Header, r.Body}
}

func (s *testServer) post(path, body string, headers ...string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, path, body, headers...)
}

// into parses the body of a reply.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	testkit.Reply{Body: r.body}.Into(t, v)
}

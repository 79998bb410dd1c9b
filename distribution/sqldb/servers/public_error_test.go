package servers_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// TestErrors_Public: the caller of a server reads nothing of a database that cannot be reached, the operator all.
func TestErrors_Public(t *testing.T) {
	at := servertest.Refused(t)
	parts := runtime.CoreParts()
	parts.Databases = servers.Drivers()
	app, err := qtype.Open(runtime.WithParts(t.Context(), parts), testkit.WriteFile(t, "app.qtype.yaml", `id: failing
flows:
  - id: find
    variables: [{id: q, type: text}, {id: a, type: text}]
    inputs: [q]
    outputs: [a]
    steps: [{type: SQLSource, id: s2, connection: "postgresql://ada:s3cret@`+at+`/orders", query: "select 'x' as a", outputs: [a]}]
`), qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { _ = app.Close(context.Background()) }()
	var log strings.Builder
	s := server.New(app, server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	h := httptest.NewServer(s)
	got := testkit.Request(t, http.MethodPost, h.URL+"/flows/find", `{"q": "hello"}`).Body
	testkit.CloseServer(h)
	testkit.Must(t, s.Shutdown(t.Context()))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if !strings.Contains(log.String(), "postgresql://ada@"+at+"/orders: cannot connect: ") || strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log is %s", log.String())
	}
	for _, private := range []string{"127.0.0.1", at, "orders", "refused", "s3cret"} {
		if strings.Contains(got, private) {
			t.Errorf("the caller reads %q in %s", private, got)
		}
	}
	id := regexp.MustCompile(`details of run (\w+)`).FindStringSubmatch(got)
	if id == nil || !strings.Contains(log.String(), "run="+id[1]) || !strings.Contains(log.String(), at) {
		t.Errorf("no id of the log in %s:\n%s", got, log.String())
	}
}

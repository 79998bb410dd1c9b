package qtype_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// serveAt serves a text at an address of this computer.
func serveAt(t *testing.T, address string, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	testkit.Must(t, err)
	s := httptest.NewUnstartedServer(serve)
	testkit.Must(t, s.Listener.Close())
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// TestRebinding reads a document, and lets the name of its server, or of one that the user
// allows, lead to another private server then.
func TestRebinding(t *testing.T) {
	var text string
	own := serveAt(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	_, port, err := net.SplitHostPort(own.Listener.Addr().String())
	testkit.Must(t, err)
	asked := 0
	serveAt(t, "127.0.0.2:"+port, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte("line\nsecret\n"))
	})
	address := "http://docs.test:" + port
	text = flowOf(`{type: FileSource, id: s, path: {uri: "`+address+`/x.csv"}, outputs: [a]}`, "")
	local := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(local, []byte(text), 0o600))
	for document, opts := range map[string][]qtype.Option{
		address + "/app.qtype.yaml": nil,
		local:                       {qtype.WithSandbox(), qtype.WithGrants(qtype.Grants{Hosts: []string{"docs.test"}})},
	} {
		testkit.ResolveNames(t, map[string][]string{"docs.test.": {"127.0.0.1"}})
		app, err := qtype.Open(t.Context(), document, append(opts, qtype.WithEphemeral())...)
		testkit.Must(t, err)
		testkit.ResolveNames(t, map[string][]string{"docs.test.": {"127.0.0.2"}})
		got := runApp(t, app, "hello")
		if asked > 0 || !strings.Contains(got, "127.0.0.2") || !strings.Contains(got, "did not have") {
			t.Errorf("%s: the other server got %d requests; %q", document, asked, got)
		}
		testkit.Must(t, app.Close(t.Context()))
	}
}

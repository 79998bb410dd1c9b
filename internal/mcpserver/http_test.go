package mcpserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	names = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// send sends a request and returns status, header and body. headers are names and values.
func send(t *testing.T, method, url, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	testkit.Must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[0] == "Host" {
			r.Host = pair[1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return answer.StatusCode, answer.Header, string(text)
}

// A session belongs to the caller that has opened it, even if others know its id.
func TestServer_SessionOfAnotherCaller(t *testing.T) {
	url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{}))
	status, header, _ := send(t, "POST", url, hello, "Test-Principal", "ada")
	id := header.Get("Mcp-Session-Id")
	if status != 200 || id == "" {
		t.Fatalf("got %d, session %q", status, id)
	}
	send(t, "POST", url, ready, "Test-Principal", "ada", "Mcp-Session-Id", id)
	for _, caller := range []string{"bob", ""} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if status, _, body := send(t, method, url, names, "Test-Principal", caller, "Mcp-Session-Id", id); status != 404 {
				t.Errorf("%s of %q: got %d %s", method, caller, status, body)
			}
		}
	}
	if status, _, body := send(t, "POST", url, names, "Test-Principal", "ada", "Mcp-Session-Id", id); status != 200 || !strings.Contains(body, "pay_back") {
		t.Errorf("got %d %s", status, body)
	}
	if status, _, _ := send(t, "DELETE", url, "", "Test-Principal", "ada", "Mcp-Session-Id", id); status != 204 {
		t.Errorf("got %d", status)
	}
	if status, _, _ := send(t, "POST", url, names, "Test-Principal", "ada", "Mcp-Session-Id", id); status != 404 {
		t.Errorf("after the end: got %d", status)
	}
}

// A caller that opens sessions without end does not keep out others.
func TestServer_SessionsOfCallers(t *testing.T) {
	s := serveApp(t, openApp(t), mcpserver.ApplicationOptions{})
	mcpserver.SetMaxSessions(s, 20)
	url := serveHTTP(t, s)
	open := func(caller string) (status int, session string) {
		status, header, _ := send(t, "POST", url, hello, "Test-Principal", caller)
		return status, header.Get("Mcp-Session-Id")
	}
	var last string
	for n := range 10 {
		status, id := open("ada")
		if status != 200 {
			t.Fatalf("session %d: %d", n, status)
		}
		last = id
	}
	if status, _ := open("ada"); status != http.StatusTooManyRequests {
		t.Errorf("one more session of the same caller: %d", status)
	}
	for _, caller := range []string{"bob", "bob", "cid", "dan"} {
		if status, _ := open(caller); status != 200 {
			t.Errorf("a session of %s: %d", caller, status)
		}
	}
	if status, _ := open("bob"); status != http.StatusTooManyRequests {
		t.Errorf("a third session of bob: %d", status)
	}
	if status, _, _ := send(t, "POST", url, names, "Test-Principal", "ada", "Mcp-Session-Id", last); status != 200 {
		t.Errorf("an open session of ada: %d", status)
	}
}

// Roles are those of the current request, also within a session.
func TestServer_Roles(t *testing.T) {
	allowed := func(ctx context.Context, _ *spec.Flow) bool {
		return slices.Contains(access.PrincipalOf(ctx).Roles, "clerk")
	}
	url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{Allowed: allowed}))
	_, header, _ := send(t, "POST", url, hello, "Test-Principal", "ada")
	session := []string{"Test-Principal", "ada", "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
	send(t, "POST", url, ready, session...)
	for _, role := range []string{"clerk", "guest", "clerk"} {
		_, _, body := send(t, "POST", url, names, append(session, "Test-Role", role)...)
		if got := strings.Contains(body, "pay_back"); got != (role == "clerk") {
			t.Errorf("%s: got %s", role, body)
		}
	}
}

// Wrong requests get an error of the protocol or of HTTP, and the server continues.
func TestServer_WrongRequests(t *testing.T) {
	url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{}))
	for _, test := range []struct {
		method, body string
		headers      []string
		want         int
	}{
		{"PUT", "", nil, 405},
		{"GET", "", nil, 400},
		{"DELETE", "", nil, 400},
		{"POST", "{", nil, 400},
		{"POST", strings.Repeat(" ", 17<<20), nil, 413},
		{"POST", hello, []string{"Content-Type", "text/plain"}, 415},
		{"POST", hello, []string{"Accept", "text/html"}, 400},
		{"POST", hello, []string{"Mcp-Session-Id", "none"}, 404},
		{"POST", hello, []string{"Mcp-Protocol-Version", "1"}, 400},
		{"POST", hello, []string{"Mcp-Protocol-Version", "zzz"}, 400},
		{"POST", hello, []string{"Host", "attacker.example"}, 403},
	} {
		if status, _, body := send(t, test.method, url, test.body, test.headers...); status != test.want {
			t.Errorf("%s %.40q %v: got %d %s, want %d", test.method, test.body, test.headers, status, body, test.want)
		}
	}
	if status, _, _ := send(t, "POST", url, hello); status != 200 {
		t.Errorf("got %d", status)
	}
}

// Web pages of other origins cannot call the server.
func TestServe_Origin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := mcpserver.Listen(ctx, ":0", false)
	testkit.Must(t, err)
	ended := make(chan error, 1)
	server := serveApp(t, openApp(t), mcpserver.ApplicationOptions{})
	go func() { ended <- mcpserver.Serve(ctx, l, server) }()
	url := "http://" + l.Addr().String() + mcpserver.Path
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("listens on %s", l.Addr())
	}
	for origin, want := range map[string]int{"https://attacker.example": 403, "http://" + l.Addr().String(): 200} {
		if status, _, body := send(t, "POST", url, hello, "Origin", origin); status != want {
			t.Errorf("%s: got %d %s", origin, status, body)
		}
	}
	if status, _, _ := send(t, "POST", strings.TrimSuffix(url, mcpserver.Path), hello); status != 404 {
		t.Errorf("another path: got %d", status)
	}
	cancel()
	testkit.Must(t, <-ended)
}

func TestListen(t *testing.T) {
	for address, exposed := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, ":0": false, "[::1]:0": false, "0.0.0.0:0": true, "[::]:0": true, "192.0.2.1:0": true, "host.example:0": true} {
		l, err := mcpserver.Listen(t.Context(), address, false)
		var refused *mcpserver.ExposedError
		if got := errors.As(err, &refused); got != exposed {
			t.Errorf("%s: got %v", address, err)
		}
		if err == nil {
			l.Close()
		}
	}
	var wrong *mcpserver.AddressError
	if _, err := mcpserver.Listen(t.Context(), "8123", false); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
	l, err := mcpserver.Listen(t.Context(), "0.0.0.0:0", true)
	testkit.Must(t, err)
	l.Close()
}

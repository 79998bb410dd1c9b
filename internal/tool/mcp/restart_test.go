package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// quickly is a retry policy for tests.
var quickly = httpx.Policy{MaxAttempts: 6, InitialDelay: 10 * time.Millisecond, MaxDelay: 60 * time.Millisecond}

// host is an HTTP server whose MCP server can be replaced.
type host struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	before  atomic.Pointer[func(http.ResponseWriter, string) bool] // answers in place of the handler; gets the body
	calls   atomic.Int32                                           // requests tools/call that arrived
	served  []*sdk.Server
}

// newHost starts a host. A legacy one does not know the protocol without sessions.
func newHost(t *testing.T, legacy bool, serve *sdk.Server) *host {
	t.Helper()
	h := &host{}
	h.serve(serve)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if legacy && bytes.Contains(body, []byte(`"server/discover"`)) {
			http.Error(w, "unknown method", http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			h.calls.Add(1)
		}
		if before := h.before.Load(); before != nil && (*before)(w, string(body)) {
			return
		}
		(*h.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			h.Close()
			close(closed)
		}()
		for open := true; open; { // a client may begin to listen after the others were closed
			h.CloseClientConnections()
			select {
			case <-closed:
				open = false
			case <-time.After(10 * time.Millisecond):
			}
		}
		for _, s := range h.served { // a session that its client could not end
			for session := range s.Sessions() {
				_ = session.Close()
			}
		}
	})
	return h
}

// serve replaces the server, which forgets all sessions.
func (h *host) serve(s *sdk.Server) {
	h.served = append(h.served, s)
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	h.handler.Store(&handler)
}

// on makes the next n calls of tools be answered by a function.
func (h *host) on(n int32, answer func(http.ResponseWriter)) {
	f := func(w http.ResponseWriter, body string) bool {
		if !strings.Contains(body, `"tools/call"`) || atomic.AddInt32(&n, -1) < 0 {
			return false
		}
		answer(w)
		return true
	}
	h.before.Store(&f)
}

// connect makes the server of a declaration.
func connect(t *testing.T, d *spec.MCPTool) *mcp.Server {
	t.Helper()
	d.ID, d.AllowPrivate = "shop", true
	// A new connection for each request: one that the server closes may be reported late.
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s, err := mcp.New(d, mcp.Env{Options: tool.Options{HTTP: once}, Getenv: os.Getenv, Folder: ".", Retry: quickly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// named returns the tools of a server by their names.
func named(t *testing.T, s *mcp.Server) map[string]tool.Tool {
	t.Helper()
	list, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]tool.Tool{}
	for _, one := range list {
		found[one.Info().Name] = one
	}
	return found
}

// counter is a server that counts how often its tools have run.
func counter() (*sdk.Server, *atomic.Int32) {
	ran := &atomic.Int32{}
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	run := func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		ran.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	}
	sdk.AddTool(s, &sdk.Tool{Name: "pay"}, run)
	sdk.AddTool(s, &sdk.Tool{Name: "look", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, run)
	sdk.AddTool(s, &sdk.Tool{Name: "put", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, run)
	return s, ran
}

func protocols(t *testing.T, test func(t *testing.T, legacy bool)) {
	t.Helper()
	t.Run("sessions", func(t *testing.T) { test(t, true) })
	t.Run("stateless", func(t *testing.T) { test(t, false) })
}

// A server that starts after the first call, and is restarted, is connected again; no call
// runs twice.
func TestServer_RefusedConnection(t *testing.T) {
	protocols(t, func(t *testing.T, legacy bool) {
		serving, ran := counter()
		h := newHost(t, legacy, serving)
		address := h.Listener.Addr().String()
		s := connect(t, &spec.MCPTool{URL: h.URL})
		pay := named(t, s)["pay"]
		if got := call(t, pay, nil); got != `"done"` {
			t.Fatal(got)
		}
		h.CloseClientConnections()
		h.Close()
		var wait sync.WaitGroup
		wait.Go(func() {
			time.Sleep(30 * time.Millisecond)
			again, _ := counter()
			h.serve(again)
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			h.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: h.Config.Handler, ReadHeaderTimeout: time.Minute}}
			h.Start()
		})
		if got := call(t, pay, nil); got != `"done"` || ran.Load() != 1 {
			t.Errorf("after a restart: %s, the first server ran %d calls", got, ran.Load())
		}
		wait.Wait()
	})
}

func TestServer_NeverUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = connect(t, &spec.MCPTool{URL: url}).Tools(t.Context())
	if want := "tool shop: " + url + ": connection refused, tried 6 times"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s := connect(t, &spec.MCPTool{URL: url, Timeout: spec.Duration(15 * time.Millisecond)})
	if _, err = s.Tools(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": timed out after 15ms") {
		t.Errorf("with a short timeout: %v", err)
	}
	private, err := mcp.New(&spec.MCPTool{URL: url}, mcp.Env{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	if _, err := private.Tools(t.Context()); err == nil || strings.Contains(err.Error(), "tried") {
		t.Errorf("an address that is not allowed: %v", err)
	}
}

// Servers say in several ways that they do not know a session any more. None of them has
// run the call.
func TestServer_UnknownSession(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"404": func(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) },
		"404 with an error": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"400 with an error": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving, ran := counter()
			h := newHost(t, true, serving)
			pay := named(t, connect(t, &spec.MCPTool{URL: h.URL}))["pay"]
			h.on(1, answer)
			if got := call(t, pay, nil); got != `"done"` || ran.Load() != 1 || h.calls.Load() != 2 {
				t.Errorf("got %s, %d calls ran, %d were sent", got, ran.Load(), h.calls.Load())
			}
		})
	}
	serving, ran := counter()
	h := newHost(t, true, serving)
	s := connect(t, &spec.MCPTool{URL: h.URL})
	pay := named(t, s)["pay"]
	fresh, again := counter()
	h.serve(fresh)
	if got := call(t, pay, nil); got != `"done"` || ran.Load() != 0 || again.Load() != 1 {
		t.Errorf("another process: %s, %d and %d calls ran", got, ran.Load(), again.Load())
	}
}

// A call whose answer is lost may have run: it is repeated only if the server declares
// that this does no harm.
func TestServer_LostAnswer(t *testing.T) {
	lost := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { http.Error(w, "busy", code) }
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		tool   string
		sent   int32
		want   string
	}{
		{"lost", lost, "pay", 1, "the connection was closed before the answer was complete"},
		{"lost", lost, "look", 2, ""},
		{"lost", lost, "put", 2, ""},
		{"503", status(503), "pay", 1, "Service Unavailable"},
		{"503", status(503), "look", 2, ""},
		{"429", status(429), "pay", 2, ""},
		{"403", status(403), "look", 1, "Forbidden"},
	} {
		t.Run(c.name+" "+c.tool, func(t *testing.T) {
			protocols(t, func(t *testing.T, legacy bool) {
				serving, _ := counter()
				h := newHost(t, legacy, serving)
				found := named(t, connect(t, &spec.MCPTool{URL: h.URL}))
				h.on(1, c.answer)
				got := call(t, found[c.tool], nil)
				if h.calls.Load() != c.sent || c.want == "" && got != `"done"` || !strings.Contains(got, c.want) {
					t.Errorf("got %s, sent %d times", got, h.calls.Load())
				}
				if got := call(t, found["pay"], nil); got != `"done"` {
					t.Errorf("afterwards: %s", got)
				}
			})
		})
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// A server announces that its tools have changed: the next use sees them.
func TestServer_ChangedTools(t *testing.T) {
	protocols(t, func(t *testing.T, legacy bool) {
		serving, _ := counter()
		h := newHost(t, legacy, serving)
		s := connect(t, &spec.MCPTool{URL: h.URL})
		look := named(t, s)["look"]
		before := s.Revision()
		// The stream of notifications is opened in the background. The server announces
		// changes only when there was none for 10 ms.
		var changed time.Time
		eventually(t, "a notification", func() bool {
			if s.Revision() != before || time.Since(changed) < 100*time.Millisecond {
				return s.Revision() != before
			}
			changed = time.Now()
			sdk.AddTool(serving, &sdk.Tool{Name: "look", Description: "Looks for a thing"}, func(_ context.Context, _ *sdk.CallToolRequest, o order) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: o.Note}}}, nil, nil
			})
			return s.Revision() != before
		})
		if got := call(t, look, map[string]any{"number": 1, "note": "found"}); got != `"found"` {
			t.Errorf("a new argument: %s", got)
		}
		if got := call(t, look, nil); got != "error: tool shop/look: argument number: is missing" {
			t.Errorf("without the new argument: %s", got)
		}
		if info := named(t, s)["look"].Info(); info.Description != "Looks for a thing" || len(info.Inputs) != 2 {
			t.Errorf("the tool is %+v", info)
		}
		before = s.Revision()
		serving.RemoveTools("look")
		sdk.AddTool(serving, &sdk.Tool{Name: "looks"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("no")
		})
		eventually(t, "a notification", func() bool { return s.Revision() != before })
		eventually(t, "the list without the tool", func() bool {
			return call(t, look, nil) == `error: tool shop/look: `+h.URL+`: the server has no tool "look"; it has looks, pay, put; did you mean "looks"?`
		})
	})
}

package qtype_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestHandler_Prefix checks that no address of a response leaves the prefix under which a
// program mounts the handler.
func TestHandler_Prefix(t *testing.T) {
	app, err := qtype.Open(t.Context(), "examples/approval/app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(context.Background())) }()
	handler := qtype.Handler(app, qtype.HandlerOptions{})
	defer func() { _ = handler.Shutdown(context.Background()) }()
	mux := http.NewServeMux()
	mux.Handle("/assistant/", http.StripPrefix("/assistant", handler))
	server := httptest.NewServer(mux)
	defer server.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, path, body string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/assistant"+path, strings.NewReader(body))
		testkit.Must(t, err)
		req.Header.Set("Prefer", "respond-async")
		resp, err := client.Do(req)
		testkit.Must(t, err)
		_ = resp.Body.Close()
		return resp
	}
	send("POST", "/sessions/import?flow=talk&id=a%2Fb%20%25", `{"role": "user", "content": "q"}`)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/flows/talk", `{"message": "hi"}`, 202},
		{"POST", "/sessions/a%2Fb%20%25/fork", `{"turn": 0, "id": "c/d"}`, 201},
		{"POST", "/sessions/import?flow=talk&id=e%2Ff", `{"role": "user", "content": "q"}`, 201},
		{"GET", "//flows", "", 404},
		{"GET", "/flows/", "", 404},
	} {
		resp := send(c.method, c.path, c.body)
		if resp.StatusCode != c.status && resp.StatusCode/100 != 3 {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, resp.StatusCode, c.status)
		}
		location := resp.Header.Get("Location")
		if location == "" {
			if c.status < 300 {
				t.Errorf("%s %s has no Location", c.method, c.path)
			}
			continue
		}
		to, err := url.Parse(location)
		testkit.Must(t, err)
		at := resp.Request.URL.ResolveReference(to)
		if !strings.HasPrefix(at.EscapedPath(), "/assistant/") {
			t.Errorf("%s %s: the location %q is outside", c.method, c.path, location)
			continue
		}
		if got := send("GET", strings.TrimPrefix(at.EscapedPath(), "/assistant"), ""); got.StatusCode != http.StatusOK {
			t.Errorf("%s %s: the location %q has status %d", c.method, c.path, location, got.StatusCode)
		}
	}
}

package server_test

import (
	"strings"
	"testing"
)

// TestBodies sends bodies that are not UTF-8, or are compressed, to each protocol: none takes them
// for something else.
func TestBodies(t *testing.T) {
	s := serve(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"talk","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":        `{"model":"talk","input":"hi"}`,
		"/flows/talk":          `{"message":"hi"}`,
		"/flows/talk/stream":   `{"id":"u1","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,
		"/flows/talk/agui":     `{"threadId":"t1","runId":"r","messages":[{"id":"1","role":"user","content":"hi"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`,
		"/mcp":                 `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hi","version":"1"}}}`,
	} {
		accept := []string{"Accept", "application/json, text/event-stream"}
		if got := s.post(path, strings.ReplaceAll(body, "hi", "\xff\xfe"), accept...); got.status != 400 {
			t.Errorf("%s, no UTF-8: %d %s", path, got.status, got.body)
		}
		if got := s.post(path, body, append(accept, "Content-Encoding", "gzip")...); got.status/100 != 4 || !strings.Contains(got.body, "compressed") {
			t.Errorf("%s, gzip: %d %s", path, got.status, got.body)
		}
	}
}

package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// lines collects a log. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestErrors_Public lets a model and a computation fail, and compares what callers of
// each protocol read with the log of the operator.
func TestErrors_Public(t *testing.T) {
	port := strings.TrimPrefix(servertest.Refused(t), "127.0.0.1:")
	file := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(`id: failing
auths: [{type: api_key, id: house_key, api_key: none-needed-here}]
models: [{type: Model, id: m, provider: openai, model_id: x, base_url: "http://127.0.0.1:PORT/v1", auth: house_key, retry: {max_attempts: 1}}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: q, type: ChatMessage}, {id: a, type: ChatMessage}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: s, model: m, inputs: [q], outputs: [a]}]
  - id: compute
    variables: [{id: n, type: int}, {id: a, type: any}]
    inputs: [n]
    outputs: [a]
    steps: [{type: Transform, id: s3, set: {a: "1 % n"}}]
`, "PORT", port)), 0o600))
	log := &lines{}
	s := serveApp(t, openApp(t, file), server.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	for name, got := range map[string]string{
		"REST":          s.post("/flows/talk", `{"q": "hello"}`).body,
		"stream":        s.post("/flows/talk/stream", `{"messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"hello"}]}]}`).body,
		"openai":        s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"hello"}]}`).body,
		"openai stream": s.post("/v1/chat/completions", `{"model":"talk","stream":true,"messages":[{"role":"user","content":"hello"}]}`).body,
		"responses":     s.post("/v1/responses", `{"model":"talk","input":"hello"}`).body,
		"agui":          s.post("/flows/talk/agui", `{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"hello"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`).body,
		"mcp": s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"hello"},
			"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "talk").body,
		"a2a": s.post("/flows/talk/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`, "A2A-Version", "1.0").body,
	} {
		for _, private := range []string{"127.0.0.1", port, "house_key", "refused"} {
			if strings.Contains(got, private) {
				t.Errorf("%s: the caller reads %q in %s", name, private, got)
			}
		}
		id := regexp.MustCompile(`details of run (\w+)`).FindStringSubmatch(got)
		if id == nil || !strings.Contains(log.String(), "run="+id[1]) {
			t.Errorf("%s: no id of the log in %s", name, got)
		}
	}
	if !strings.Contains(log.String(), "127.0.0.1:"+port) {
		t.Errorf("the log is %s", log)
	}
	if got := s.post("/flows/compute", `{"n": 0}`).body; !strings.Contains(got, "divi") || strings.Contains(got, "details of run") {
		t.Errorf("a computation: %s", got)
	}
}

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// eraseRequest is what OpenAI sends before it calls a tool. An encoder would write it otherwise.
const eraseRequest = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"erase","arguments":"{\"page\": 7}","more":"\u0066<"}`

// openWiki returns another instance of an application whose provider asks before it calls a tool.
func openWiki(t *testing.T, provider, folder string) *runtime.App {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(`
id: wiki
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
stores: [{type: sqlite, id: disk, url: "sqlite:%s"}]
memories: [{id: desk, policy: message_window, max_messages: 20, store: disk}]
models: [{type: Model, id: writer, provider: openai, api: responses, model_id: some-model, base_url: %q, auth: k}]
tools: [{type: HostedTool, id: pages, hosted: mcp, settings: {server_label: docs, server_url: "https://docs.example/mcp"}}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: writer, memory: desk, tools: [pages], approve: [pages], inputs: [message], outputs: [answer]}]
`, filepath.Join(folder, "desk.db"), provider+"/v1"))
	app, err := qtype.Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(t.Context()) })
	return app
}

// TestHostedApproval_RestartedServer: a conversation waits for the decision about a call that the
// provider makes, and continues on a server that was restarted.
func TestHostedApproval_RestartedServer(t *testing.T) {
	for decision, want := range map[string]string{
		`"approved": true`: `{"approval_request_id":"mcpr_1","approve":true,"type":"mcp_approval_response"}`,
		`"approved": false, "reason": "not on Sundays"`: `{"approval_request_id":"mcpr_1","approve":false,"reason":"error: pages was not called: the user rejected the call: not on Sundays","type":"mcp_approval_response"}`,
	} {
		var mu sync.Mutex
		var sent []string
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body) // a short read fails the assertions
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, string(raw))
			item := eraseRequest
			if strings.Contains(string(raw), "mcp_approval_response") {
				item = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}`
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"response","status":"completed","output":[%s]}`, item)
		}))
		folder := t.TempDir()
		first := serveApp(t, openWiki(t, provider.URL, folder), server.Options{})
		var run waitingRun
		asked := first.post("/flows/talk", `{"message": "Erase page 7"}`)
		if asked.into(t, &run); len(run.Pending) != 1 || !strings.Contains(asked.body, `"arguments":{"name":"erase","arguments":{"page":7}}`) {
			t.Fatalf("the run is %s", asked.body)
		}
		testkit.Must(t, first.own.Shutdown(t.Context()))
		second := serveApp(t, openWiki(t, provider.URL, folder), server.Options{})
		if n, err := second.own.Resume(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d runs were resumed: %v", n, err)
		}
		if r := second.post("/runs/"+run.ID+"/answer", `{"id": "`+run.Pending[0].ID+`", `+decision+`}`); r.status != http.StatusOK {
			t.Fatalf("the answer got %d %s", r.status, r.body)
		}
		if events := second.do("GET", "/runs/"+run.ID+"/events", "").body; !strings.Contains(events, "Done.") {
			t.Errorf("the events are %s", events)
		}
		mu.Lock()
		if len(sent) != 2 || !strings.Contains(sent[1], eraseRequest+","+want) {
			t.Errorf("%s: the provider got\n%s", decision, strings.Join(sent, "\n"))
		}
		mu.Unlock()
		testkit.CloseServer(provider)
	}
}

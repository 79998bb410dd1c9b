package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const effectsDocument = `id: app
memories: [{id: notes}]
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, text: Done.}
      - {match: refund, tool_calls: [{name: now, arguments: {}}, {name: refund, arguments: {order: A-1}}]}
      - {match: cancel, tool_calls: [{name: cancel, arguments: {order: A-2}}]}
      - {text: Hello.}
tools:
  - {type: PythonFunctionTool, id: clock, name: now, description: Tells the time., module_path: qtype.application.commons.tools, function_name: get_current_timestamp, outputs: [{id: now, type: datetime}]}
  - {type: FlowTool, id: refund, name: refund, description: Refunds., flow: pay}
  - {type: FlowTool, id: cancel, name: cancel, description: Cancels., flow: pay}
flows:
  - id: pay
    variables: [{id: order, type: text}]
    inputs: [order]
    outputs: [order]
    steps: [{type: Echo, id: pass, inputs: [order], outputs: [order]}]
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps: [{type: Agent, id: agent, model: clerk, memory: notes, tools: [clock, refund, cancel], approve: [cancel], inputs: [message], outputs: [reply]}]
`

// TestRewind_Effects checks that undoing turns names the calls of tools that are not undone, by each protocol: not those of tools
// that only read. A call that was rejected is none of them, and is shown as rejected.
func TestRewind_Effects(t *testing.T) {
	s := serveApp(t, openApp(t, testkit.WriteFile(t, "app.qtype.yaml", effectsDocument)), server.Options{})
	const call = `[{"tool":"refund","arguments":"{\"order\":\"A-1\"}"}]`
	chat := func(id, text string) string {
		return `{"id":"` + id + `","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"` + text + `"}]}]}`
	}
	thread := func(id, text string) string {
		return aguiOf(id, `{"id": "m", "role": "user", "content": "`+text+`"}`, "")
	}
	for name, undo := range map[string]func() reply{
		`"not_undone":` + call: func() reply {
			s.post("/flows/talk", `{"message": "refund A-1"}`, "X-Session-Id", "rest")
			return s.post("/sessions/rest/rewind", `{"turn": 1}`)
		},
		`{"type":"data-not-undone","data":` + call + `,"transient":true}`: func() reply {
			s.post("/flows/talk/stream", chat("ui", "refund A-1"))
			edited := chat("ui", "hello")
			return s.post("/flows/talk/stream", strings.Replace(edited, `{"id":"ui"`, `{"id":"ui","trigger":"submit-message","messageId":"1"`, 1))
		},
		`"session":"native","not_undone":` + call: func() reply {
			s.post("/flows/talk/stream", chat("native", "refund A-1"))
			edited := strings.Replace(chat("native", "hello"), `{"id":"native"`, `{"id":"native","trigger":"submit-message","messageId":"1"`, 1)
			run := s.post("/flows/talk/stream", edited).header.Get("X-Run-Id")
			return s.do("GET", "/runs/"+run+"/events", "")
		},
		`"name":"not_undone","value":` + call: func() reply {
			s.post("/flows/talk/agui", thread("agui", "refund A-1"))
			return s.post("/flows/talk/agui", thread("agui", "hello"))
		},
	} {
		if got := undo(); got.status != http.StatusOK || !strings.Contains(got.body, name) {
			t.Errorf("the answer lacks %s: %d\n%s", name, got.status, got.body)
		}
	}

	run := s.post("/flows/talk/stream", chat("rejected", "cancel A-2")).header.Get("X-Run-Id")
	var waiting struct{ Pending []struct{ ID string } }
	s.do("GET", "/runs/"+run, "").into(t, &waiting)
	s.post("/runs/"+run+"/answer", `{"id": "`+waiting.Pending[0].ID+`", "approved": false, "reason": "not today"}`)
	s.do("GET", "/runs/"+run+"/events", "")
	if got := s.do("GET", "/sessions/rejected/messages", "").body; !strings.Contains(got, `"state":"output-denied"`) || !strings.Contains(got, `"approved":false,"reason":"not today"`) {
		t.Errorf("the call is not shown as rejected: %s", got)
	}
	if got := s.post("/sessions/rejected/rewind", `{"turn": 1}`).body; strings.Contains(got, "not_undone") {
		t.Errorf("a rejected call: %s", got)
	}
}

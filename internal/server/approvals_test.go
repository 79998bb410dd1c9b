package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/tool"
)

// serveDesk serves testdata/desk.qtype.yaml to callers that the headers Test-Principal and Test-Role name, as
// access control would by their tokens. It returns the decisions in the audit log, too.
func serveDesk(t *testing.T, store memory.Store) (s *testServer, decisions func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	app := openApp(t, "testdata/desk.qtype.yaml", qtype.WithAudit(func(r tool.AuditRecord) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Event == tool.AuditApproval {
			list = append(list, r.Principal+" "+string(r.Decision)+" by "+r.Decider)
		}
		return nil
	}))
	s = serveApp(t, app, server.Options{Store: store})
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := access.Principal{Name: r.Header.Get("Test-Principal"), Roles: r.Header.Values("Test-Role")}
		s.own.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), p)))
	})
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// waiting starts a run of a caller that waits for a decision.
func (s *testServer) waiting(caller string) (run string, request *runs.Request) {
	s.t.Helper()
	var out struct {
		ID      string
		Pending []*runs.Request
	}
	reply := s.post("/flows/talk/stream", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"refund order 7"}]}]}`, "Test-Principal", caller)
	s.do("GET", "/runs/"+reply.header.Get("X-Run-Id"), "", "Test-Principal", caller).into(s.t, &out)
	if len(out.Pending) != 1 {
		s.t.Fatalf("the run waits for %d requests: %s", len(out.Pending), reply.body)
	}
	return out.ID, out.Pending[0]
}

// The caller who asks for a refund cannot approve it, by no protocol; whoever has the role can, and the
// audit log and the events of the run name who has.
func TestApprovals_ByRole(t *testing.T) {
	s, decisions := serveDesk(t, nil)
	run, request := s.waiting("user:eve")
	eve := []string{"Test-Principal", "user:eve"}
	yes := `{"id":"` + request.ID + `","approved":true}`
	if got := s.post("/runs/"+run+"/answer", strings.Replace(yes, "}", `,"by":"user:bob"}`, 1), eve...); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a caller names who decides: %d %s", got.status, got.body)
	}
	part := `{"type":"tool-refund","toolCallId":"` + request.Call + `","state":"approval-responded","input":{"order":7},"approval":{"id":"` + request.ID + `","approved":true}}`
	for name, tt := range map[string]struct{ path, body string }{
		"REST":      {"/runs/" + run + "/answer", yes},
		"approvals": {"/approvals/" + run, yes},
		"UI stream": {"/flows/talk/stream", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"refund order 7"}]},{"id":"2","role":"assistant","parts":[` + part + `]}]}`},
		"AG-UI": {"/flows/talk/agui", aguiOf("c", `{"id": "m", "role": "user", "content": "refund order 7"}`,
			`, "resume": [{"interruptId": "`+request.ID+`", "status": "resolved", "payload": {"approved": true}}]`)},
	} {
		got := s.post(tt.path, tt.body, eve...)
		if name == "approvals" && got.status == http.StatusNotFound { // nothing waits for a caller without the role
			continue
		}
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "it waits for someone with the role desk") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("GET", "/approvals", "", eve...).body; !strings.Contains(got, `"approvals":[]`) {
		t.Errorf("a caller without the role sees %s", got)
	}
	bob := []string{"Test-Principal", "user:bob", "Test-Role", "desk"}
	var list struct {
		Approvals []struct {
			Run, Flow, Caller string
			Request           runs.Request
		}
	}
	s.do("GET", "/approvals", "", bob...).into(t, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Run != run || list.Approvals[0].Caller != "user:eve" || string(list.Approvals[0].Request.Arguments) != `{"order":7}` {
		t.Fatalf("the list is %+v", list)
	}
	if got := s.do("GET", "/runs/"+run, "", bob...); got.status != http.StatusNotFound {
		t.Errorf("who decides reads the run of the caller: %d", got.status)
	}
	if got := s.post("/approvals/"+run, yes, bob...); got.status != http.StatusOK || !strings.Contains(got.body, `"approved":true,"by":"user:bob"`) {
		t.Fatalf("the decision: %d %s", got.status, got.body)
	}
	events := s.do("GET", "/runs/"+run+"/events", "", eve...).body // ends with the run
	if !strings.Contains(events, `"decider":"user:bob"`) || !strings.Contains(events, "R7") {
		t.Errorf("the events are %s", events)
	}
	if got := strings.Join(decisions(), ", "); got != "user:eve approved by user:bob" {
		t.Errorf("the audit log has %q", got)
	}
	if got := s.post("/approvals/"+run, yes, bob...); got.status != http.StatusNotFound && got.status != http.StatusConflict {
		t.Errorf("a second decision: %d %s", got.status, got.body)
	}
}

// Tasks of A2A and responses of /v1 are not approved by their caller either.
func TestApprovals_ByRoleOfTasks(t *testing.T) {
	s, _ := serveDesk(t, nil)
	eve := []string{"Test-Principal", "user:eve"}
	send := func(more, text string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"` + text + `"` + more + `,"role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}}`
	}
	var task struct {
		Result struct{ Task struct{ ID string } }
		Error  struct {
			Code    int
			Message string
		}
	}
	sent := s.post("/a2a", send("", "refund order 8"), eve...)
	sent.into(t, &task)
	if strings.Contains(sent.body, "Answer approve") || !strings.Contains(sent.body, "waits for the approval of role:desk") {
		t.Errorf("A2A asks a caller who may not decide: %s", sent.body)
	}
	s.post("/a2a", send(`,"taskId":"`+task.Result.Task.ID+`"`, "approve"), eve...).into(t, &task)
	if task.Error.Code != -31403 || !strings.Contains(task.Error.Message, "the role desk") {
		t.Errorf("A2A: %+v", task)
	}
	chat := s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"refund order 8"}]}`, eve...)
	if chat.status != http.StatusUnprocessableEntity || strings.Contains(chat.body, "/answer") || !strings.Contains(chat.body, "needs the approval of role:desk") {
		t.Errorf("/v1: %d %s", chat.status, chat.body)
	}
	for _, stream := range []string{"false", "true"} {
		got := s.post("/v1/responses", `{"model":"talk","input":"refund order 9","stream":`+stream+`}`, eve...)
		if got.status != http.StatusUnprocessableEntity || strings.Contains(got.body, "mcp_approval_request") || !strings.Contains(got.body, "needs the approval of role:desk") {
			t.Errorf("/v1/responses with stream %s: %d %s", stream, got.status, got.body)
		}
	}
	run, request := s.waiting("user:eve")
	id := `"mcpr_` + strings.TrimPrefix(run, "run_") + "_" + request.ID + `"`
	got := s.post("/v1/responses", `{"model":"talk","input":[{"type":"mcp_approval_request","id":`+id+`,"name":"refund","arguments":"{}","server_label":"qtype"},
		{"type":"mcp_approval_response","approval_request_id":`+id+`,"approve":true}]}`, eve...)
	if got.status != http.StatusForbidden || !strings.Contains(got.body, "the role desk") {
		t.Errorf("/v1/responses: %d %s", got.status, got.body)
	}
}

// Streams do not ask a caller who may not decide.
func TestApprovals_NotAskedInStreams(t *testing.T) {
	s, _ := serveDesk(t, nil)
	eve := []string{"Test-Principal", "user:eve"}
	for name, tt := range map[string]struct{ path, body, not, want string }{
		"UI stream": {"/flows/talk/stream", `{"id":"u","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"refund order 7"}]}]}`,
			`"tool-approval-request"`, `"by":["role:desk"]`},
		"AG-UI": {"/flows/talk/agui", aguiOf("g", `{"id": "m", "role": "user", "content": "refund order 7"}`, ""),
			`"interrupts"`, `"code":"approval_required"`},
	} {
		got := s.post(tt.path, tt.body, eve...).body
		if strings.Contains(got, tt.not) || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A decision reaches a run of another server, and a run that waits is listed after a restart.
func TestApprovals_OtherServer(t *testing.T) {
	shared := memory.NewInProcess()
	first, decisions := serveDesk(t, shared)
	second, _ := serveDesk(t, shared)
	run, request := first.waiting("user:eve")
	bob := []string{"Test-Principal", "user:bob", "Test-Role", "desk"}
	if got := second.do("GET", "/approvals", "", bob...).body; !strings.Contains(got, run) {
		t.Errorf("the other server lists %s", got)
	}
	raw, err := json.Marshal(map[string]any{"id": request.ID, "approved": false, "reason": "too late"})
	testkit.Must(t, err)
	if got := second.post("/approvals/"+run, string(raw), "Test-Principal", "user:eve"); got.status == http.StatusOK {
		t.Errorf("the caller decides on the other server: %s", got.body)
	}
	if got := second.post("/approvals/"+run, string(raw), bob...); got.status != http.StatusOK {
		t.Fatalf("the decision: %d %s", got.status, got.body)
	}
	if events := first.do("GET", "/runs/"+run+"/events", "", "Test-Principal", "user:eve").body; !strings.Contains(events, "too late") {
		t.Errorf("the events are %s", events)
	}
	if got := strings.Join(decisions(), ", "); got != "user:eve rejected by user:bob" {
		t.Errorf("the audit log has %q", got)
	}
}

// A caller answers its part of a round in which another call waits for a role. The run goes on when both are there.
func TestApprovals_MixedRound(t *testing.T) {
	const text, city = "locate and refund 7", `{\"city\":\"Porto\",\"country\":\"PT\"}`
	eve, bob := []string{"Test-Principal", "user:eve"}, []string{"Test-Principal", "user:bob", "Test-Role", "desk"}
	question := `{"id": "m", "role": "user", "content": "` + text + `"}`
	for name, answer := range map[string]func(s *testServer, run, call string) reply{
		"REST": func(s *testServer, run, call string) reply {
			return s.post("/runs/"+run+"/answer", `{"id":"`+call+`","result":{"city":"Porto","country":"PT"}}`, eve...)
		},
		"UI stream": func(s *testServer, run, call string) reply {
			return s.post("/flows/talk/stream", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"`+text+`"}]},
				{"id":"msg_`+run+`","role":"assistant","parts":[{"type":"tool-locate","toolCallId":"`+call+`","state":"output-available","input":{},"output":{"city":"Porto","country":"PT"}}]}]}`, eve...)
		},
		"AG-UI": func(s *testServer, run, call string) reply {
			return s.post("/flows/talk/agui", aguiOf("c", question+`, {"id": "msg_`+run+`_1", "role": "assistant", "toolCalls": [{"id": "`+call+`", "type": "function", "function": {"name": "locate", "arguments": "{}"}}]},
				{"id": "t", "role": "tool", "toolCallId": "`+call+`", "content": "`+city+`"}`, ""), eve...)
		},
		"chat completions": func(s *testServer, _, call string) reply {
			return s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"`+text+`"},
				{"role":"assistant","tool_calls":[{"id":"`+call+`","type":"function","function":{"name":"locate","arguments":"{}"}}]},{"role":"tool","tool_call_id":"`+call+`","content":"`+city+`"}]}`, eve...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, decisions := serveDesk(t, nil)
			path, body := "/flows/talk/stream", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"`+text+`"}]}]}`
			switch name {
			case "AG-UI":
				path, body = "/flows/talk/agui", aguiOf("c", question, "")
			case "chat completions":
				path, body = "/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"`+text+`"}]}`
			}
			begun := s.post(path, body, eve...)
			var run struct {
				ID      string
				Pending []*runs.Request
			}
			s.do("GET", "/runs/"+begun.header.Get("X-Run-Id"), "", eve...).into(t, &run)
			if len(run.Pending) != 2 {
				t.Fatalf("it waits for %d requests: %+v", len(run.Pending), begun)
			}
			var call, approval string
			for _, p := range run.Pending {
				switch {
				case p.Kind == runs.Approval:
					approval = p.ID
				case name == "REST":
					call = p.ID
				case name == "chat completions":
					call = between(begun.body, `"tool_calls":[{"id":"`, `"`)
				default:
					call = p.Call
				}
			}
			answered := answer(s, run.ID, call)
			want := map[string]string{"REST": `"status":"waiting"`, "UI stream": `"status":"waiting"`, "AG-UI": "approval_required", "chat completions": "approval_required"}[name]
			if !strings.Contains(answered.body, want) {
				t.Errorf("no %s in the answer: %d %s", want, answered.status, answered.body)
			}
			if got := s.post("/approvals/"+run.ID, `{"id":"`+approval+`","approved":true}`, bob...); got.status != http.StatusOK {
				t.Fatalf("the decision: %d %s", got.status, got.body)
			}
			if events := s.do("GET", "/runs/"+run.ID+"/events", "", eve...).body; !strings.Contains(events, `"result":{"city":"Porto","country":"PT"}`) || !strings.Contains(events, "R7") || !strings.Contains(events, `"status":"succeeded"`) {
				t.Errorf("the events are %s", events)
			}
			if got := strings.Join(decisions(), ", "); got != "user:eve approved by user:bob" {
				t.Errorf("the audit log has %q", got)
			}
		})
	}
}

package agui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/agui"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// event is an event of the protocol.
type event map[string]any

// post sends an input and returns the status and the events of the response.
func post(t *testing.T, address, flow, body, key string) (int, []event) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/flows/"+flow+"/agui", strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode, nil
	}
	var events []event
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var ev event
			testkit.Must(t, json.Unmarshal([]byte(data), &ev))
			events = append(events, ev)
		}
	}
	return res.StatusCode, events
}

// input returns an input with messages in the form "role: text".
func input(thread string, more string, messages ...string) string {
	var list []map[string]any
	for _, text := range messages {
		role, content, _ := strings.Cut(text, ": ")
		m := map[string]any{"id": "m", "role": role, "content": content}
		if call, result, ok := strings.Cut(content, "="); ok && role == "tool" {
			m["toolCallId"], m["content"] = call, result
		}
		list = append(list, m)
	}
	raw, _ := json.Marshal(list) // texts always encode
	return `{"threadId":"` + thread + `","runId":"r","messages":` + string(raw) + more + `}`
}

func typesOf(events []event) string {
	var names []string
	for _, ev := range events {
		name, _ := ev["type"].(string)
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func textOf(events []event) string {
	var b strings.Builder
	for _, ev := range events {
		if ev["type"] == "TEXT_MESSAGE_CONTENT" {
			b.WriteString(ev["delta"].(string))
		}
	}
	return b.String()
}

func find(events []event, typ string) event {
	for _, ev := range events {
		if ev["type"] == typ {
			return ev
		}
	}
	return nil
}

func TestRun_Events(t *testing.T) {
	address := serve(t)
	for _, tt := range []struct{ name, flow, text, want string }{
		{"text", "talk", "hello", "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"},
		{"reasoning", "talk", "think", "RUN_STARTED STEP_STARTED REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_END " +
			"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"},
		{"error", "talk", "fail", "RUN_STARTED STEP_STARTED STEP_FINISHED RUN_ERROR"},
		{"server tool", "forgetful", "receipt of 1", "RUN_STARTED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END STEP_STARTED STEP_FINISHED TOOL_CALL_RESULT " +
			"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"},
		{"approval", "help", "refund order 1", "RUN_STARTED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END CUSTOM STEP_FINISHED RUN_FINISHED"},
	} {
		status, events := post(t, address, tt.flow, input(tt.name, "", "user: "+tt.text), "")
		if got := typesOf(events); status != http.StatusOK || got != tt.want {
			t.Errorf("%s: %d %s", tt.name, status, got)
		}
		if started := events[0]; started["threadId"] != tt.name || started["runId"] != "r" {
			t.Errorf("%s: %v", tt.name, started)
		}
	}
}

// Messages of the roles system and developer reach the model as one system message, with and without
// a memory, which does not store them.
func TestRun_SystemMessages(t *testing.T) {
	address := serve(t)
	turn := []string{"system: Be brief.", "user: hello"}
	later := append(turn, "assistant: Hello.", "developer: Be polite.", "user: again")
	for _, tt := range []struct {
		flow     string
		messages []string
		want     string
	}{
		{"talk", turn, "2 messages"},
		{"talk", later, "4 messages"},
		{"talk", []string{"user: hello", "user: again", "user: and again"}, "5 messages"},
		{"forgetful", later, "4 messages"},
	} {
		_, events := post(t, address, tt.flow, input("s", "", tt.messages...), "")
		if got := textOf(events); !strings.Contains(got, "I received "+tt.want) {
			t.Errorf("%s, %d messages: %q, want %s", tt.flow, len(tt.messages), got, tt.want)
		}
	}
}

// A tool of the client ends the response, and the message with its result continues the run.
func TestRun_ClientTool(t *testing.T) {
	address := serve(t)
	tools := `,"tools":[{"name":"weather","description":"Weather"}]`
	_, events := post(t, address, "help", input("t", tools, "user: weather in Oslo"), "")
	call, _ := find(events, "TOOL_CALL_START")["toolCallId"].(string)
	outcome, _ := find(events, "RUN_FINISHED")["outcome"].(map[string]any)
	if outcome["type"] != "success" || len(outcome["pendingToolCallIds"].([]any)) != 1 {
		t.Fatalf("outcome %v", outcome)
	}
	if status, _ := post(t, address, "help", input("t", tools, "user: weather in Oslo", "tool: other=x"), ""); status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown call: status %d", status)
	}
	_, events = post(t, address, "help", input("t", tools, "user: weather in Oslo", "tool: "+call+"=rain"), "")
	if got := typesOf(events); got != "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED" {
		t.Errorf("continued with %s", got)
	}
	if status, _ := post(t, address, "help", input("t", tools, "user: weather in Oslo", "tool: "+call+"=rain"), ""); status != http.StatusConflict {
		t.Errorf("a late result: status %d", status)
	}
}

func TestRun_Interrupt(t *testing.T) {
	address := serve(t)
	_, events := post(t, address, "help", input("t", "", "user: refund order 7"), "")
	outcome, _ := find(events, "RUN_FINISHED")["outcome"].(map[string]any)
	interrupts, _ := outcome["interrupts"].([]any)
	if outcome["type"] != "interrupt" || len(interrupts) != 1 {
		t.Fatalf("outcome %v", outcome)
	}
	id, _ := interrupts[0].(map[string]any)["id"].(string)
	for payload, want := range map[string]int{`"maybe"`: http.StatusUnprocessableEntity, `{}`: http.StatusUnprocessableEntity, `null`: http.StatusUnprocessableEntity} {
		resume := `,"resume":[{"interruptId":"` + id + `","status":"resolved","payload":` + payload + `}]`
		if status, _ := post(t, address, "help", input("t", resume, "user: refund order 7"), ""); status != want {
			t.Errorf("payload %s: status %d", payload, status)
		}
	}
	if status, _ := post(t, address, "help", input("t", `,"resume":[{"interruptId":"x","status":"cancelled"}]`, "user: x"), ""); status != http.StatusNotFound {
		t.Errorf("unknown interrupt: status %d", status)
	}
	resume := `,"resume":[{"interruptId":"` + id + `","status":"resolved","payload":{"approved":true}}]`
	_, events = post(t, address, "help", input("t", resume, "user: refund order 7"), "")
	if result := find(events, "TOOL_CALL_RESULT"); result == nil || !strings.Contains(result["content"].(string), "R7") {
		t.Errorf("result %v", result)
	}
}

// A thread belongs to its caller: the same id of another caller is another thread.
func TestRun_Isolation(t *testing.T) {
	ada, eve := strings.Repeat("a", 32), strings.Repeat("e", 32)
	control, err := access.New(access.Config{Keys: "ada:" + ada + ",eve:" + eve})
	testkit.Must(t, err)
	address := serveWith(t, control)
	_, events := post(t, address, "help", input("t", "", "user: refund order 7"), ada)
	outcome, _ := find(events, "RUN_FINISHED")["outcome"].(map[string]any)
	interrupts, _ := outcome["interrupts"].([]any)
	id, _ := interrupts[0].(map[string]any)["id"].(string)
	resume := `,"resume":[{"interruptId":"` + id + `","status":"resolved","payload":true}]`
	if status, _ := post(t, address, "help", input("t", resume, "user: x"), eve); status != http.StatusConflict {
		t.Errorf("eve resumes: status %d", status)
	}
	_, events = post(t, address, "help", input("t", "", "user: hello"), eve)
	if outcome, _ := find(events, "RUN_FINISHED")["outcome"].(map[string]any); outcome["type"] != "success" {
		t.Errorf("eve's thread: %v", outcome)
	}
	if status, events := post(t, address, "help", input("t", resume, "user: x"), ada); status != http.StatusOK || find(events, "TOOL_CALL_RESULT") == nil {
		t.Errorf("ada resumes: status %d", status)
	}
	if status, _ := post(t, address, "help", input("t", "", "user: hello"), ""); status != http.StatusUnauthorized {
		t.Errorf("no key: status %d", status)
	}
}

func TestRun_BadInputs(t *testing.T) {
	address := serve(t)
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"not JSON", `{`, http.StatusBadRequest},
		{"a list", `[]`, http.StatusUnprocessableEntity},
		{"no thread", `{"runId":"r","messages":[]}`, http.StatusUnprocessableEntity},
		{"no run", `{"threadId":"t","messages":[]}`, http.StatusUnprocessableEntity},
		{"no messages", `{"threadId":"t","runId":"r"}`, http.StatusUnprocessableEntity},
		{"empty messages", `{"threadId":"t","runId":"r","messages":[]}`, http.StatusUnprocessableEntity},
		{"thread with a control character", `{"threadId":"\u0001","runId":"r","messages":[]}`, http.StatusBadRequest},
		{"unknown role", input("t", "", "robot: x"), http.StatusUnprocessableEntity},
		{"assistant last", input("t", "", "user: x", "assistant: y"), http.StatusUnprocessableEntity},
		{"empty message", input("t", "", "user: "), http.StatusUnprocessableEntity},
		{"tool without a name", input("t", `,"tools":[{}]`, "user: x"), http.StatusUnprocessableEntity},
		{"equal tools", input("t", `,"tools":[{"name":"a"},{"name":"a"}]`, "user: x"), http.StatusUnprocessableEntity},
		{"schema of a tool", input("t", `,"tools":[{"name":"a","parameters":[1]}]`, "user: x"), http.StatusUnprocessableEntity},
		{"status", input("t", `,"resume":[{"interruptId":"a","status":"x"}]`, "user: x"), http.StatusUnprocessableEntity},
		{"content", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":3}]}`, http.StatusUnprocessableEntity},
		{"part", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"x"}]}]}`, http.StatusUnprocessableEntity},
		{"file", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","value":"http://127.0.0.1"}}]}]}`, http.StatusUnprocessableEntity},
	} {
		if status, _ := post(t, address, "talk", tt.body, ""); status != tt.want {
			t.Errorf("%s: status %d", tt.name, status)
		}
	}
}

// A run that waits when the server shuts down is continued by the next server.
func TestRun_SurvivesRestart(t *testing.T) {
	store := memory.NewInProcess()
	first, address := serveStore(t, store, nil)
	tools := `,"tools":[{"name":"weather","description":"Weather"}]`
	_, events := post(t, address, "help", input("t", tools, "user: weather in Oslo"), "")
	call, _ := find(events, "TOOL_CALL_START")["toolCallId"].(string)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	testkit.Must(t, first.Shutdown(ctx))

	second, address := serveStore(t, store, nil)
	if n, err := second.Resume(t.Context()); n != 1 || err != nil {
		t.Fatalf("resumed %d, %v", n, err)
	}
	waiting := func() bool {
		list := second.Host().Runs.List("", nil)
		return len(list) == 1 && list[0].State().Status == runs.Waiting
	}
	for !waiting() {
		testkit.Must(t, ctx.Err())
		goruntime.Gosched()
	}
	_, events = post(t, address, "help", input("t", tools, "user: weather in Oslo", "tool: "+call+"=rain"), "")
	if got := typesOf(events); got != "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED" {
		t.Errorf("continued with %s", got)
	}
}

func TestRun_Limits(t *testing.T) {
	control, err := access.New(access.Config{Limits: access.Limits{BodyBytes: 4096}})
	testkit.Must(t, err)
	if status, _ := post(t, serveWith(t, control), "talk", input("t", "", "user: "+strings.Repeat("x", 8192)), ""); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", status)
	}
}

// FuzzInput reads inputs of clients: they never cause a panic.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		input("t", "", "user: hello"),
		input("t", `,"tools":[{"name":"a","parameters":{}}],"context":[{"description":"name","value":"v"}],"state":{"language":1}`, "system: s", "user: hello"),
		input("t", `,"resume":[{"interruptId":"a","status":"resolved","payload":{"approved":true}}]`, "user: x", "tool: call={}"),
		`{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"data","value":"AAEC"}}]}]}`,
		`{"threadId":"t","runId":"r","messages":[{"role":"assistant","toolCalls":[{"id":"call","function":{"name":"f","arguments":"{"}}]},{"role":"tool","toolCallId":"call","content":null,"error":"e"}]}`,
	} {
		f.Add(seed)
	}
	app, err := runtimetest.Open(f.Context(), "testdata/agents.qtype.yaml", runtime.Options{Store: memory.NewInProcess()})
	testkit.Must(f, err)
	f.Cleanup(func() { _ = app.Close(context.Background()) })
	i := slices.IndexFunc(app.Spec().Flows, func(flow *spec.Flow) bool { return flow.ID == "greet" })
	flow := schema.NewFlow(app.Spec().Flows[i])
	f.Fuzz(func(_ *testing.T, body string) {
		in, err := agui.Parse([]byte(body))
		if err != nil {
			return
		}
		agui.Read(in, flow, &runs.Request{ID: "a", Kind: runs.Approval})
		agui.Read(in, flow, &runs.Request{ID: "a", Kind: runs.ClientTool})
	})
}

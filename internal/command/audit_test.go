package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/tool"
)

// audited has a step and an Agent that call a tool. Its flow gets the number of the order.
const audited = `id: refunds
models: [{type: Model, id: clerk, provider: mock, rules: [{after: tool, text: done}, {match: '.', tool_calls: [{name: refund, arguments: {order: 7}}]}]}]
tools: [{type: FlowTool, id: refund, name: refund, description: Pays an order back, flow: pay_back}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, tools: [refund], approve: [refund], inputs: [message], outputs: [answer]}]
  - id: direct
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: InvokeTool, id: pay, tool: refund, concurrency_config: {num_workers: 4}, input_bindings: {order: order}, output_bindings: {receipt: receipt}}]
  - id: pay_back
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: PromptTemplate, id: book, template: "R{order}", inputs: [order], outputs: [receipt]}]
`

// auditRecords reads a log and deletes it.
func auditRecords(t *testing.T, path string) []tool.AuditRecord {
	t.Helper()
	var all []tool.AuditRecord
	for line := range strings.Lines(testkit.ReadFile(t, path)) {
		var r tool.AuditRecord
		testkit.Must(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	testkit.Must(t, os.Remove(path))
	return all
}

// describeRecord returns what a record has about the call.
func describeRecord(r tool.AuditRecord) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s %s %s%s", r.Event, r.Flow, r.Step, r.Tool, r.Session, r.Decision, r.Status))
}

// TestAuditLog_Commands records calls of qtype run and chat, by the flag and the variable.
func TestAuditLog_Commands(t *testing.T) {
	inFolder(t, map[string]string{"refunds.qtype.yaml": audited, "rows.jsonl": strings.Repeat("{\"order\": 7}\n", 40)})
	if _, code := call(t, "run", "refunds.qtype.yaml", "-i", `"refund it"`, "--session", "s", "--approve", "refund", "--audit-log", "a.jsonl"); code != cli.ExitDone {
		t.Fatal(code)
	}
	var got []string
	for _, r := range auditRecords(t, "a.jsonl") {
		if got = append(got, describeRecord(r)); r.Principal != memory.Actor(appflags.WithActor(t.Context())) || r.Application != "refunds" {
			t.Errorf("the record is %+v", r)
		}
	}
	want := []string{"approval talk.help refund s approved", "call talk.help refund s", "result talk.help refund s ok"}
	if !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}

	t.Setenv("QTYPE_AUDIT_LOG", "b.jsonl")
	if _, code := call(t, "run", "refunds.qtype.yaml", "-f", "direct", "-I", "rows.jsonl"); code != cli.ExitDone {
		t.Fatal(code)
	}
	calls := map[string]int{}
	for _, r := range auditRecords(t, "b.jsonl") {
		calls[r.Call]++
	}
	if len(calls) != 40 {
		t.Errorf("%d calls are recorded, want 40", len(calls))
	}
	for id, n := range calls {
		if n != 2 {
			t.Errorf("call %s has %d records", id, n)
		}
	}

	var out bytes.Buffer
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader("refund it\n"), Out: &out, Err: &out}}
	if code := Execute(t.Context(), Core(), s, []string{"chat", "refunds.qtype.yaml", "--session", "c", "--approve", "refund"}); code != cli.ExitDone {
		t.Error(out.String())
	}
	if all := auditRecords(t, "b.jsonl"); len(all) != 3 || all[0].Decision != tool.AuditApproved || all[0].Session != "c" {
		t.Errorf("the records of the chat are %+v", all)
	}
}

// TestAuditLog_Refused calls no tool if the log cannot be written.
func TestAuditLog_Refused(t *testing.T) {
	inFolder(t, map[string]string{"refunds.qtype.yaml": audited})
	var out bytes.Buffer
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &out}}
	code := Execute(t.Context(), Core(), s, []string{"run", "refunds.qtype.yaml", "-f", "direct", "-i", `{"order": 7}`, "--audit-log", "none/a.jsonl"})
	if code != cli.ExitFailed || !strings.Contains(out.String(), "error: the audit log cannot be written: open none/a.jsonl: no such file") {
		t.Errorf("exit status %d: %s", code, out.String())
	}
}

// TestAuditLog_Server records the caller of a server.
func TestAuditLog_Server(t *testing.T) {
	inFolder(t, map[string]string{"refunds.qtype.yaml": audited})
	const key = "0123456789abcdef0123456789abcdef"
	control, err := access.New(access.Config{Keys: "ada:" + key})
	testkit.Must(t, err)
	c := &serveCommand{Streams: &cli.Streams{Streams: terminal.Streams{Err: &bytes.Buffer{}}}, audit: appflags.Audit{File: "a.jsonl"}, ephemeral: true, logFormat: cli.NewEnumFlag("text"), logLevel: cli.NewEnumFlag("error")}
	p, list := qtype.Check(t.Context(), "refunds.qtype.yaml", qtype.WithStrict())
	testkit.Must(t, list.Err())
	app, err := c.open(p)
	testkit.Must(t, err)
	s := server.New(app, server.Options{Access: control, Log: c.logger()})
	web := httptest.NewServer(s)
	defer func() {
		web.Close()
		testkit.Must(t, s.Shutdown(context.Background()))
		testkit.Must(t, app.Close(context.Background()))
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/flows/direct", strings.NewReader(`{"order": 7}`))
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	testkit.Must(t, res.Body.Close())
	all := auditRecords(t, "a.jsonl")
	if res.StatusCode != http.StatusOK || len(all) != 2 || all[0].Principal != "ada" || all[1].Status != tool.AuditOK {
		t.Errorf("status %d, the records are %+v", res.StatusCode, all)
	}
}

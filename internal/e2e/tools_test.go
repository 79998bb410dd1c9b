package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// clientToolDocument has a step that calls a client tool.
const clientToolDocument = `id: app
types: [{id: Verdict, properties: {pay: boolean, reason: "text?"}}]
tools:
  - type: ClientTool
    id: decide
    name: decide
    description: Decides
    timeout: 2s
    inputs: [{id: order, type: int}, {id: day, type: "date?"}]
    outputs: [{id: verdict, type: Verdict}]
flows:
  - id: main
    variables: [{id: order, type: int}, {id: verdict, type: Verdict}]
    inputs: [order]
    outputs: [verdict]
    steps: [{type: InvokeTool, id: ask, tool: decide, input_bindings: {order: order}, output_bindings: {verdict: verdict}, concurrency_config: {num_workers: 4}}]
`

func TestClientTool_Handler(t *testing.T) {
	var asked sync.Map
	app := openApp(t, clientToolDocument, qtype.WithClientTool("decide", func(ctx context.Context, ask tool.Request) (any, error) {
		asked.Store(string(ask.Args), fmt.Sprint(ask.Tool.Name, ask.Caller.Session, ask.Caller.Row, ask.Caller.Step))
		switch string(ask.Args) {
		case `{"order":1}`:
			return map[string]any{"verdict": map[string]any{"pay": "yes", "reason": nil}}, nil
		case `{"order":2}`:
			return struct {
				Pay    bool   `json:"pay"`
				Reason string `json:"reason"`
			}{true, "small"}, nil // the value of the only output
		case `{"order":3}`:
			return map[string]any{"pay": "perhaps"}, nil
		case `{"order":4}`:
			return nil, errors.New("no operator\nis online")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	var rows []map[string]any
	for i := range 5 {
		rows = append(rows, map[string]any{"order": i + 1})
	}
	got := runJSON(t, app, "main", rows...)
	want := []string{`{"verdict":{"pay":true,"reason":null}}`, `{"verdict":{"pay":true,"reason":"small"}}`,
		`error: step ask: tool decide: output verdict: pay: expected boolean, got "perhaps"`,
		`error: step ask: tool decide: no operator is online`, `error: step ask: tool decide: no answer came within 2s (timeout)`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if who, _ := asked.Load(`{"order":2}`); who != "decides2ask" {
		t.Errorf("the request has caller %v", who)
	}
}

func TestClientTool_NoHandler(t *testing.T) {
	app := openApp(t, clientToolDocument)
	rows := 0
	input := func(yield func(runtime.Input) bool) { rows++ }
	for _, err := range app.Run(t.Context(), "main", input) {
		if target := (*factory.NoClientHandlerError)(nil); !errors.As(err, &target) || target.Tool != "decide" {
			t.Errorf("got %v", err)
		}
	}
	if rows != 0 {
		t.Error("rows were read")
	}
}

// approvalDocument has an agent with two tools, one of which requires approval.
const approvalDocument = `id: app
memories: [{id: notes}]
models:
  - type: Model
    id: assistant
    provider: mock
    rules:
      - {after: tool, text: Done.}
      - {match: 'pay (\d+)', tool_calls: [{name: pay, arguments: {order: $1}}, {name: look, arguments: {order: $1}}]}
tools:
  - {type: FlowTool, id: pay_tool, name: pay, description: Pays, flow: pay_back}
  - {type: FlowTool, id: look_tool, name: look, description: Looks, flow: pay_back}
flows:
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: assistant, memory: notes, tools: [pay_tool, look_tool], approve: [pay_tool], parallel_tools: true, inputs: [message], outputs: [answer]}]
  - id: pay_back
    description: Pays back
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: PromptTemplate, id: book, template: "R{order}", inputs: [order], outputs: [receipt]}]
`

// TestAgent_Approval: the tools in approve require approval, and a rejection is sent
// to the model and stored.
func TestAgent_Approval(t *testing.T) {
	var requests []string
	app := openApp(t, approvalDocument, qtype.WithApproval(func(_ context.Context, ask tool.Request) (bool, string, error) {
		requests = append(requests, ask.Tool.Name+string(ask.Args))
		return strings.Contains(string(ask.Args), "17"), "too much", nil
	}))
	runJSON(t, app, "main", map[string]any{"message": "pay 17"}, map[string]any{"message": "pay 18"})
	if want := []string{`pay{"order":17}`, `pay{"order":18}`}; !slices.Equal(requests, want) {
		t.Errorf("approval requests %v, want %v", requests, want)
	}
	window, err := app.Memory("notes").Window(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, e := range window.Entries {
		if e.Message.Role == "tool" {
			results = append(results, e.Message.Name+": "+e.Message.Text())
		}
	}
	want := []string{`pay: {"receipt":"R17"}`, `look: {"receipt":"R17"}`,
		"pay: error: pay was not called: the user rejected the call: too much", `look: {"receipt":"R18"}`}
	if !slices.Equal(results, want) {
		t.Errorf("the memory holds\n%s\nwant\n%s", strings.Join(results, "\n"), strings.Join(want, "\n"))
	}
}

func TestAgent_ApprovalWithoutApprover(t *testing.T) {
	app := openApp(t, approvalDocument)
	for _, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"message": "pay 1"})})) {
		if target := (*steps.NoApproverError)(nil); !errors.As(err, &target) || target.Tool != "pay_tool" {
			t.Errorf("got %v", err)
		}
	}
}

// TestAgent_StructuredOutput: the type is sent to the provider as a schema and to the
// model as text; an answer that does not match is returned to the model, and the
// memory holds the one that matches.
func TestAgent_StructuredOutput(t *testing.T) {
	type sent struct {
		Messages       []struct{ Role, Content string }
		ResponseFormat struct {
			Type       string
			JSONSchema struct {
				Name   string
				Schema json.RawMessage
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	var requests []sent
	answers := []string{`Sure! {"label": 1}`, `{"label": "late", "score": "high"}`, "```json\n{\"label\": \"late\", \"score\": 0.9}\n```"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s sent
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			t.Error(err)
		}
		requests = append(requests, s)
		text, _ := json.Marshal(answers[min(len(requests), len(answers))-1])
		fmt.Fprintf(w, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, text)
	}))
	defer server.Close()
	app := openApp(t, `id: app
memories: [{id: notes}]
types: [{id: Label, description: What a message is about, properties: {label: text, score: float}}]
auths: [{type: api_key, id: key, api_key: k}]
models: [{type: Model, id: assistant, provider: openai, model_id: gpt-6-sol, base_url: "`+server.URL+`", auth: key}]
flows:
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: label, type: Label}]
    inputs: [message]
    outputs: [label]
    steps: [{type: Agent, id: help, model: assistant, memory: notes, system_message: You label., inputs: [message], outputs: [label]}]
`)
	got := runJSON(t, app, "main", map[string]any{"message": "Where is it?"})
	if want := []string{`{"label":{"label":"late","score":0.9}}`}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	first, last := requests[0], requests[len(requests)-1]
	const schema = `{"description":"What a message is about","type":"object","properties":{"label":{"type":"string"},"score":{"type":"number"}},"required":["label","score"],"additionalProperties":false}`
	if f := first.ResponseFormat; f.Type != "json_schema" || f.JSONSchema.Name != "Label" || string(f.JSONSchema.Schema) != schema {
		t.Errorf("the response format is %+v", f)
	}
	if m := first.Messages[0]; m.Role != "system" || !strings.HasPrefix(m.Content, "You label.") || !strings.HasSuffix(m.Content, schema) {
		t.Errorf("the system message is %+v", m)
	}
	if n := len(last.Messages); n != 6 || !strings.Contains(last.Messages[5].Content, `score: expected float, got "high"`) {
		t.Errorf("at last the system message is %+v", last.Messages)
	}
	window, err := app.Memory("notes").Window(t.Context(), "s")
	if err != nil || len(window.Entries) != 2 {
		t.Errorf("the memory holds %d messages, %v", len(window.Entries), err)
	}
}

// TestPythonTool_CancelEndsProcess cancels a function that would sleep for days.
func TestPythonTool_CancelEndsProcess(t *testing.T) {
	app := openApp(t, `id: app
tools: [{type: PythonFunctionTool, id: nap, name: nap, description: Sleeps, module_path: time, function_name: sleep, inputs: [{id: seconds, type: int}]}]
flows:
  - id: main
    variables: [{id: seconds, type: int}]
    inputs: [seconds]
    steps: [{type: InvokeTool, id: rest, tool: nap, input_bindings: {seconds: seconds}, output_bindings: {}}]
`)
	if err := runForError(t.Context(), t, app, "0"); err != nil { // starts the process
		t.Skipf("no working Python: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := runForError(ctx, t, app, "1000000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// runForError runs the flow on one row and returns the error of the run or of the row.
func runForError(ctx context.Context, t *testing.T, app *runtime.App, seconds string) error {
	t.Helper()
	for res, err := range app.Run(ctx, "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"seconds": seconds})})) {
		if err != nil {
			return err
		}
		if res.Err != nil {
			return res.Err
		}
	}
	return nil
}

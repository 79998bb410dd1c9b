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
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/factory"
)

// rowsOf runs a flow over rows and shows each result as JSON, or its error.
func rowsOf(t *testing.T, app *runtime.App, flow string, rows ...map[string]any) []string {
	t.Helper()
	var inputs []runtime.Input
	for _, r := range rows {
		inputs = append(inputs, runtime.Input{Values: r, Session: "s"})
	}
	var out []string
	for res, err := range app.Run(t.Context(), flow, slices.Values(inputs)) {
		if err != nil {
			t.Fatal(err)
		}
		if res.Err != nil {
			out = append(out, "error: "+res.Err.Error())
			continue
		}
		var fields []value.Field
		for v, x := range res.Outputs() {
			fields = append(fields, value.Field{Name: v.ID, Value: x})
		}
		out = append(out, value.NewRecord("", fields...).String())
	}
	return out
}

func openWith(t *testing.T, text string, opts ...qtype.Option) *runtime.App {
	t.Helper()
	app, err := qtype.Open(t.Context(), write(t, text), append(opts, qtype.WithEphemeral())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return app
}

const asking = `id: app
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

func TestAClientToolIsAnsweredByTheProgram(t *testing.T) {
	var asked sync.Map
	app := openWith(t, asking, qtype.WithClientTool("decide", func(ctx context.Context, ask tool.Request) (any, error) {
		asked.Store(string(ask.Args), fmt.Sprint(ask.Tool.Name, ask.Caller.Session, ask.Caller.Row, ask.Caller.Step))
		switch string(ask.Args) {
		case `{"order":1}`:
			return map[string]any{"verdict": map[string]any{"pay": "yes", "reason": nil}}, nil
		case `{"order":2}`:
			return struct {
				Pay    bool   `json:"pay"`
				Reason string `json:"reason"`
			}{true, "small"}, nil // the only output's value alone
		case `{"order":3}`:
			return map[string]any{"pay": "perhaps"}, nil
		case `{"order":4}`:
			return nil, errors.New("nobody\nis in")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	var rows []map[string]any
	for i := range 5 {
		rows = append(rows, map[string]any{"order": i + 1})
	}
	got := rowsOf(t, app, "main", rows...)
	want := []string{`{"verdict":{"pay":true,"reason":null}}`, `{"verdict":{"pay":true,"reason":"small"}}`,
		`error: step ask: tool decide: output verdict: pay: expected boolean, got "perhaps"`,
		`error: step ask: tool decide: nobody is in`, `error: step ask: tool decide: no answer came within 2s (timeout)`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if who, _ := asked.Load(`{"order":2}`); who != "decides2ask" {
		t.Errorf("the caller is %v", who)
	}
}

func TestAClientToolWithoutAnyoneFailsBeforeTheFirstRow(t *testing.T) {
	app := openWith(t, asking)
	rows := 0
	input := func(yield func(runtime.Input) bool) { rows++ }
	for _, err := range app.Run(t.Context(), "main", input) {
		if nobody := (*factory.NoClientHandlerError)(nil); !errors.As(err, &nobody) || nobody.Tool != "decide" {
			t.Errorf("got %v", err)
		}
	}
	if rows != 0 {
		t.Error("rows were read")
	}
}

const paying = `id: app
memories: [{id: notes}]
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, text: Done.}
      - {match: 'pay (\d+)', tool_calls: [{name: pay, arguments: {order: $1}}, {name: look, arguments: {order: $1}}]}
tools:
  - {type: FlowTool, id: pay_tool, name: pay, description: Pays, flow: pay_back}
  - {type: FlowTool, id: look_tool, name: look, description: Looks, flow: pay_back}
flows:
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [said]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, memory: notes, tools: [pay_tool, look_tool], approve: [pay_tool], parallel_tools: true, inputs: [said], outputs: [answer]}]
  - id: pay_back
    description: Pays back
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: PromptTemplate, id: book, template: "R{order}", inputs: [order], outputs: [receipt]}]
`

// TestAnAgentAsksBeforeItCalls: only the tools that approve lists, and a no is
// told to the model and remembered.
func TestAnAgentAsksBeforeItCalls(t *testing.T) {
	var asked []string
	app := openWith(t, paying, qtype.WithApproval(func(_ context.Context, ask tool.Request) (bool, string, error) {
		asked = append(asked, ask.Tool.Name+string(ask.Args))
		return strings.Contains(string(ask.Args), "17"), "too much", nil
	}))
	rowsOf(t, app, "main", map[string]any{"said": "pay 17"}, map[string]any{"said": "pay 18"})
	if want := []string{`pay{"order":17}`, `pay{"order":18}`}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
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
		t.Errorf("the model was told\n%s\nwant\n%s", strings.Join(results, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnAgentThatMustAskNeedsSomebody(t *testing.T) {
	app := openWith(t, paying)
	for _, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"said": "pay 1"})})) {
		if nobody := (*steps.NoApproverError)(nil); !errors.As(err, &nobody) || nobody.Tool != "pay_tool" {
			t.Errorf("got %v", err)
		}
	}
}

// TestAnAgentAnswersWithARecord: the type goes to the provider as a schema and to
// the model in words; an answer that does not fit is given back, and the memory
// holds the one that did.
func TestAnAgentAnswersWithARecord(t *testing.T) {
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
	app := openWith(t, `id: app
memories: [{id: notes}]
types: [{id: Label, description: What a message is about, properties: {label: text, score: float}}]
auths: [{type: api_key, id: key, api_key: k}]
models: [{type: Model, id: clerk, provider: openai, model_id: gpt-4o, base_url: "`+server.URL+`", auth: key}]
flows:
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: label, type: Label}]
    inputs: [said]
    outputs: [label]
    steps: [{type: Agent, id: help, model: clerk, memory: notes, system_message: You label., inputs: [said], outputs: [label]}]
`)
	got := rowsOf(t, app, "main", map[string]any{"said": "Where is it?"})
	if want := []string{`{"label":{"label":"late","score":0.9}}`}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	first, last := requests[0], requests[len(requests)-1]
	const schema = `{"description":"What a message is about","type":"object","properties":{"label":{"type":"string"},"score":{"type":"number"}},"required":["label","score"],"additionalProperties":false}`
	if f := first.ResponseFormat; f.Type != "json_schema" || f.JSONSchema.Name != "Label" || string(f.JSONSchema.Schema) != schema {
		t.Errorf("the provider was asked for %+v", f)
	}
	if m := first.Messages[0]; m.Role != "system" || !strings.HasPrefix(m.Content, "You label.") || !strings.HasSuffix(m.Content, schema) {
		t.Errorf("the model was told %+v", m)
	}
	if n := len(last.Messages); n != 6 || !strings.Contains(last.Messages[5].Content, `score: expected float, got "high"`) {
		t.Errorf("at last the model was told %+v", last.Messages)
	}
	window, err := app.Memory("notes").Window(t.Context(), "s")
	if err != nil || len(window.Entries) != 2 {
		t.Errorf("the memory holds %d messages, %v", len(window.Entries), err)
	}
}

// TestACancelledRunEndsItsPythonFunction however long it would take, and leaves nothing behind.
func TestACancelledRunEndsItsPythonFunction(t *testing.T) {
	app := openWith(t, `id: app
tools: [{type: PythonFunctionTool, id: nap, name: nap, description: Sleeps, module_path: time, function_name: sleep, inputs: [{id: seconds, type: int}]}]
flows:
  - id: main
    variables: [{id: seconds, type: int}]
    inputs: [seconds]
    steps: [{type: InvokeTool, id: rest, tool: nap, input_bindings: {seconds: seconds}, output_bindings: {}}]
`)
	if err := fail(t.Context(), t, app, "0"); err != nil { // the process is there
		t.Skipf("there is no Python that works: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := fail(ctx, t, app, "1000000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// fail runs the flow on one row and tells what ended it, or failed the row.
func fail(ctx context.Context, t *testing.T, app *runtime.App, seconds string) error {
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

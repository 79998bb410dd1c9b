package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// handoffApp has an agent that transfers to two flows; %[1]s is the model server, %[2]s the
// memory of billing.
const handoffApp = `id: desk
models:
  - {type: Model, id: first, provider: openai, model_id: first, base_url: "%[1]s/v1"}
  - {type: Model, id: second, provider: openai, model_id: second, base_url: "%[1]s/v1"}
memories: [{id: talk}, {id: bills}]
tools:
  - {type: PythonFunctionTool, id: now, name: now, description: Returns the time, module_path: qtype.application.commons.tools, function_name: get_current_timestamp}
flows:
  - id: billing
    description: Answers questions about invoices.
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: Agent, id: bill, model: second, system_message: You bill., %[2]stools: [now], inputs: [question], outputs: [answer]}
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: Agent, id: triage, model: first, system_message: You sort., memory: talk, handoffs: [billing], inputs: [message], outputs: [answer]}
`

// callMessage returns an assistant message that calls a tool.
func callMessage(text, name, arguments string) string {
	return fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"id":"c1","type":"function","function":{"name":%q,"arguments":%q}}]}`, text, name, arguments)
}

// deskModel answers as the two models of handoffApp: the first transfers questions about
// invoices, the second hands those about the weather back.
func deskModel(n int, r request) string {
	last := r.Messages[len(r.Messages)-1]
	switch {
	case r.Model == "first" && last.Role == "user" && strings.Contains(last.Content, "invoice"):
		return callMessage("", "transfer_to_billing", "{}")
	case r.Model == "second" && strings.Contains(last.Content, "weather"):
		return callMessage("", "hand_back", `{"reason": "not an invoice"}`)
	}
	return assistantMessage(fmt.Sprint(r.Model, " ", n))
}

// say runs one turn and returns the answer, or the error.
func say(t *testing.T, app *runtime.App, text string, opts ...runtime.RunOption) string {
	t.Helper()
	for row, err := range app.Run(t.Context(), "main", singleInput("s", map[string]any{"message": text}), opts...) {
		if err != nil {
			return err.Error()
		}
		if row.Err != nil {
			return row.Err.Error()
		}
		answer, _ := row.Get("answer")
		return value.Text(answer)
	}
	return ""
}

// historyOf returns the texts of a session of a memory.
func historyOf(t *testing.T, app *runtime.App, memory, session string) []string {
	t.Helper()
	var out []string
	for e, err := range app.Memory(memory).History(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(e.Message.Role)+": "+e.Message.Text())
	}
	return out
}

// The flow that takes over the conversation answers this turn and the next ones, also in
// another process, until its agent hands the conversation back.
func TestHandoff(t *testing.T) {
	s := startModelServer(t, deskModel)
	text := fmt.Sprintf(handoffApp, s.URL, "")
	file := filepath.Join(t.TempDir(), "memory.db")
	open := func() *runtime.App {
		store, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		app, err := qtype.Open(t.Context(), writeFile(t, text), qtype.WithStore(store))
		if err != nil {
			t.Fatal(err)
		}
		return app
	}
	app := open()
	got := []string{say(t, app, "hello"), say(t, app, "my invoice is wrong")}
	if err := app.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	app = open()
	defer app.Close(context.Background())
	got = append(got, say(t, app, "and the other one"), say(t, app, "how is the weather"), say(t, app, "thanks"))
	if want := []string{"first 1", "second 3", "second 4", "first 6", "first 7"}; !slices.Equal(got, want) {
		t.Errorf("the answers are %q, want %q", got, want)
	}
	var sent []string
	for _, r := range s.received() {
		sent = append(sent, r.Model+" < "+transcript(r.Messages))
	}
	want := []string{
		"first < system: You sort. | user: hello",
		"first < system: You sort. | user: hello | assistant: first 1 | user: my invoice is wrong",
		"second < system: You bill. | user: hello | assistant: first 1 | user: my invoice is wrong",
		"second < system: You bill. | user: hello | assistant: first 1 | user: my invoice is wrong | assistant: second 3 | user: and the other one",
		"second < system: You bill. | user: hello | assistant: first 1 | user: my invoice is wrong | assistant: second 3 | user: and the other one | assistant: second 4 | user: how is the weather",
		"first < system: You sort. | user: hello | assistant: first 1 | user: my invoice is wrong | assistant: →transfer_to_billing{} | tool: The conversation was transferred to billing. | " +
			"assistant: second 3 | user: and the other one | assistant: second 4 | user: how is the weather",
	}
	for i := range want {
		if sent[i] != want[i] {
			t.Errorf("request %d is\n%s\nwant\n%s", i+1, sent[i], want[i])
		}
	}
	var tools []string
	for _, tool := range s.received()[2].Tools {
		tools = append(tools, tool.Function.Name)
	}
	if !slices.Equal(tools, []string{"now", "hand_back"}) {
		t.Errorf("the second agent has the tools %q", tools)
	}
}

// A flow with its own memory remembers what it answered, and what it handed back.
func TestHandoff_OwnMemory(t *testing.T) {
	s := startModelServer(t, deskModel)
	app := openApp(t, fmt.Sprintf(handoffApp, s.URL, "memory: bills, "))
	for _, text := range []string{"my invoice is wrong", "how is the weather"} {
		say(t, app, text)
	}
	want := []string{"user: my invoice is wrong", "assistant: second 2", "user: how is the weather", "assistant: ",
		"tool: The conversation was handed back.", "assistant: The conversation was handed back."}
	if got := historyOf(t, app, "bills", "s"); !slices.Equal(got, want) {
		t.Errorf("the memory of billing has %q", got)
	}
	want = []string{"user: my invoice is wrong", "assistant: ", "tool: The conversation was transferred to billing.", "assistant: second 2",
		"user: how is the weather", "assistant: first 4"}
	if got := historyOf(t, app, "talk", "s"); !slices.Equal(got, want) {
		t.Errorf("the memory of the first agent has %q", got)
	}
}

// A question that is transferred again after it was handed back is a question of the next turn of the flow: its model is not
// asked to continue its own answer.
func TestHandoff_Again(t *testing.T) {
	s := startModelServer(t, func(n int, r request) string {
		switch {
		case r.Model == "first":
			return callMessage("", "transfer_to_billing", "{}")
		case n == 2:
			return callMessage("", "hand_back", "{}")
		}
		return assistantMessage("second")
	})
	text := fmt.Sprintf(handoffApp, s.URL, "memory: bills, ")
	app := openApp(t, strings.ReplaceAll(text, "{id: question, type: text}, {id: answer, type: text}", "{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}"))
	if got := say(t, app, "my invoice is wrong"); got != "second" {
		t.Errorf("got %q", got)
	}
	want := []string{"user: my invoice is wrong", "assistant: ", "tool: The conversation was handed back.", "assistant: The conversation was handed back.", "user: my invoice is wrong", "assistant: second"}
	if got := historyOf(t, app, "bills", "s"); !slices.Equal(got, want) {
		t.Errorf("the memory of billing has %q", got)
	}
}

// The reason of an agent that hands the conversation back is the same in a run that is repeated after the turn of that agent
// was stored.
func TestHandoff_ReasonIsKept(t *testing.T) {
	fails := true
	s := startModelServer(t, func(n int, r request) string {
		if answer := deskModel(n, r); r.Model == "second" || n == 1 || !fails {
			return answer
		}
		fails = false
		return "no JSON"
	})
	app := openApp(t, strings.ReplaceAll(fmt.Sprintf(handoffApp, s.URL, "memory: bills, "), `/v1"}`, `/v1", retry: {max_attempts: 1}}`))
	for range 2 {
		run, err := clienttool.OpenSuspension(filepath.Join(t.TempDir(), "../run.json"), clienttool.SuspendedRun{Run: "r", ID: "r"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := run.Context(t.Context())
		for row := range app.Run(ctx, "main", singleInput("s", map[string]any{"message": "an invoice about the weather"})) {
			_ = row // the first one fails
		}
		stop(nil)
	}
	last := s.received()[len(s.received())-1].Messages
	if got := last[len(last)-1].Content; got != "The conversation was transferred to billing. It was handed back: not an invoice" {
		t.Errorf("the first agent got %q", got)
	}
}

// A question that is handed back at once is answered by the agent that transferred it, and a
// model that transfers it again and again fails the step.
func TestHandoff_Refused(t *testing.T) {
	s := startModelServer(t, deskModel)
	app := openApp(t, fmt.Sprintf(handoffApp, s.URL, ""))
	if got := say(t, app, "an invoice about the weather"); got != "first 3" {
		t.Errorf("the answer is %q", got)
	}
	last := s.received()[2].Messages
	if got := last[len(last)-1].Content; got != "The conversation was transferred to billing. It was handed back: not an invoice" {
		t.Errorf("the first agent got %q", got)
	}
	stubborn := startModelServer(t, func(_ int, r request) string {
		if r.Model == "first" {
			return callMessage("", "transfer_to_billing", "{}")
		}
		return callMessage("", "hand_back", "{}")
	})
	app = openApp(t, fmt.Sprintf(handoffApp, stubborn.URL, ""))
	want := "step triage: the model made the tool call transfer_to_billing({}) 4 times with the same result, but the limit is 3 (max_repeated_calls)"
	if got := say(t, app, "hello"); !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
}

// The text of the flow that has the conversation is streamed as that of a writer of the answer.
func TestHandoff_Streams(t *testing.T) {
	s := startModelServer(t, func(_ int, r request) string {
		if r.Stream && r.Model == "second" {
			return assistantMessage("a streamed answer")
		}
		return assistantMessage("unused")
	})
	app := openApp(t, fmt.Sprintf(handoffApp, s.URL, ""))
	if err := app.Memory("talk").SetVariables(t.Context(), "s", memory.Variable{Name: "handoff.triage", Value: []byte(`"billing"`)}); err != nil {
		t.Fatal(err)
	}
	flow, err := app.Flow("main")
	if err != nil {
		t.Fatal(err)
	}
	writers := flow.Writers("answer")
	var text strings.Builder
	say(t, app, "go on", runtime.WithEvents(func(ev steps.Event) {
		if writers[ev.Step] {
			text.WriteString(ev.Text)
		}
	}, steps.EventText))
	if text.String() != "a streamed answer" {
		t.Errorf("streamed %q by %v", text.String(), writers)
	}
}

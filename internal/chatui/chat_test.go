package chatui_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/chatui"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `id: app
memories: [{id: notes, token_limit: 2000}]
models:
  - {type: Model, id: parrot, provider: mock, rules: [{match: break, error: it broke}, {match: '(?s)(.*)', text: 'Echo: $1'}]}
flows:
  - id: batch
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps: [{type: Echo, id: pass, inputs: [x], outputs: [x]}]
  - id: talk
    interface: {type: Conversational, session_inputs: [tone]}
    variables: [{id: message, type: ChatMessage}, {id: tone, type: text}, {id: reply, type: ChatMessage}]
    inputs: [message, tone]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: answer, model: parrot, memory: notes, inputs: [message], outputs: [reply]}
  - id: outer
    interface: {type: Conversational, session_inputs: [tone]}
    variables: [{id: message, type: ChatMessage}, {id: tone, type: text}, {id: reply, type: ChatMessage}]
    inputs: [message, tone]
    outputs: [reply]
    steps:
      - {type: InvokeFlow, id: call, flow: talk, input_bindings: {message: message, tone: tone}, output_bindings: {reply: reply}}
`

// chat runs a conversation of the lines with a flow, as if the output were a terminal.
func chat(t *testing.T, flow, lines string) (out, errs string, err error) {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", document)
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close(context.Background())
	target, err := chatui.NewTarget(app.Spec(), flow, `{"tone": "calm"}`)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	c := &chatui.Chat{Streams: &terminal.Streams{Out: &stdout, Err: &stderr, OutTerminal: true, Width: 80},
		Lines: terminal.NewLines(strings.NewReader(lines)), App: app, Target: target, Session: "me"}
	defer c.Lines.Close()
	err = c.Run(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestChat(t *testing.T) {
	for _, flow := range []string{"talk", "outer", ""} {
		out, errs, err := chat(t, flow, "hello\n\none\\\ntwo\n//slash\n")
		if want := "Echo: hello\nEcho: one\ntwo\nEcho: /slash\n"; out != want || err != nil {
			t.Errorf("flow %q: got %q, %v, want %q", flow, out, err, want)
		}
		if want := "model parrot (mock, offline) · memory notes · session me\n"; !strings.HasSuffix(errs, want) {
			t.Errorf("flow %q: header %q", flow, errs)
		}
	}
}

func TestChat_FailedTurn(t *testing.T) {
	out, errs, err := chat(t, "talk", "break it\nhello\n")
	if !errors.Is(err, chatui.ErrTurnFailed) || out != "Echo: hello\n" || !strings.Contains(errs, "error: step answer: model parrot: (mock) it broke\n") && !strings.Contains(errs, "it broke") {
		t.Errorf("got %q, %q, %v", out, errs, err)
	}
}

func TestChat_Commands(t *testing.T) {
	out, errs, err := chat(t, "talk", "/memory\nhello\n/memory\n/history\n/clear\n/memroy\n/help\n/quit\nnever\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"window ▕", "turn 1 · ", "memory notes: session me deleted\n", "/quit     end the conversation"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, want := range []string{"memory notes has no conversations in ", `unknown command /memroy; did you mean "memory"?; /help lists the commands`} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	if strings.Contains(out, "never") {
		t.Errorf("a line after /quit was answered:\n%s", out)
	}
}

func TestNewTarget_Errors(t *testing.T) {
	path := testkit.WriteFile(t, "app.qtype.yaml", document)
	p, list := qtype.Check(t.Context(), path)
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		flow, inputs, want string
		isInput            bool
	}{
		{"batch", "", "flow batch is not conversational; conversational flows: talk, outer", false},
		{"tlk", "", `no flow has the id "tlk"; there are: batch, talk, outer; did you mean "talk"?`, false},
		{"talk", "", `flow talk also needs tone (text): pass -i '{"tone": …}'`, true},
		{"talk", `{"tone": "x", "more": 1}`, `-i: flow talk has no other input "more"`, true},
		{"talk", "[1]", `-i cannot be "[1]": expected a JSON object with the flow's other inputs`, true},
	}
	for _, tc := range tests {
		_, err := chatui.NewTarget(p.Document.Application, tc.flow, tc.inputs)
		var input *terminal.UsageError
		if err == nil || err.Error() != tc.want || errors.As(err, &input) != tc.isInput {
			t.Errorf("%s %s: got %v, want %s", tc.flow, tc.inputs, err, tc.want)
		}
	}
	if _, err := chatui.NewTarget(nil, "", ""); err == nil {
		t.Error("a document that is not an application has a target")
	}
}

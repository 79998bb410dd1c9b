package clienttool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

const document = `id: app
tools:
  - {type: ClientTool, id: decide, name: decision, description: Decides, inputs: [{id: question, type: text}], outputs: [{id: verdict, type: boolean}]}
  - {type: CommandTool, id: shout, name: shout, description: Shouts, program: cat, inputs: [], outputs: []}
  - {type: MCPTool, id: booking, command: cat, elicitation: true}
flows:
  - id: pass
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps: [{type: Echo, id: echo, inputs: [x], outputs: [x]}]
`

func load(t *testing.T) *spec.Application {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", document)
	p, list := authoring.Check(t.Context(), path, authoring.Options{})
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return p.Document.Application
}

func TestProgram(t *testing.T) {
	app := load(t)
	for name, want := range map[string]string{
		"decide":   "",
		"decision": "",
		"decid":    `no such ClientTool; the document has decide, booking; did you mean "decide"?`,
		"booking":  "",
		"shout":    "tool of type CommandTool is not a ClientTool, and no MCPTool with elicitation",
	} {
		id, handler, err := clienttool.Program(app, name, "cat", nil)
		switch {
		case want == "" && (err != nil || id != "decide" && id != "booking" || handler == nil):
			t.Errorf("%s: %q, %v", name, id, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if err := clienttool.CheckTool(app, "shout"); err != nil {
		t.Error(err)
	}
	if err := clienttool.CheckTool(app, "shuot"); err == nil || err.Error() != `no such tool; did you mean "shout"?` {
		t.Errorf("got %v", err)
	}
	if !clienttool.Prompts(app) {
		t.Error("an application with a ClientTool does not prompt")
	}
}

// user returns a user who types the lines, and what is written to the user.
func user(t *testing.T, lines string) (*clienttool.User, *strings.Builder) {
	var errs strings.Builder
	typed := terminal.NewLines(strings.NewReader(lines))
	t.Cleanup(typed.Close)
	return &clienttool.User{Streams: &terminal.Streams{Err: &errs}, Lines: typed}, &errs
}

func call(outputs ...*spec.Variable) tool.Request {
	return tool.Request{Tool: tool.Info{ID: "decide", Name: "decide"}, Args: []byte(`{"question":"now"}`), Outputs: outputs,
		Caller: tool.Caller{Session: "s", Row: 2, Step: "ask"}}
}

func TestUser_Handle(t *testing.T) {
	boolean := &spec.Variable{ID: "verdict", Type: spec.Type{Name: "boolean"}}
	text := &spec.Variable{ID: "note", Type: spec.Type{Name: "text"}}
	tests := map[string]struct {
		lines   string
		outputs []*spec.Variable
		want    any
		wantErr string
		written string
	}{
		"prompted again": {"maybe\nyes\n", []*spec.Variable{boolean}, true, "", "expected boolean"},
		"third try":      {"a\nb\nc\n", []*spec.Variable{boolean}, nil, "expected boolean", "verdict (boolean)> "},
		"number as text": {"007\n", []*spec.Variable{text}, "007", "", "decide (session s, row 2)"},
		"end of input":   {"", []*spec.Variable{text}, nil, "the input ended before the answer", `{"question":"now"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u, errs := user(t, tc.lines)
			got, err := u.Handle(t.Context(), call(tc.outputs...))
			if tc.wantErr == "" {
				if r, ok := got.(*value.Record); ok {
					got, _ = r.Get(tc.outputs[0].ID)
				}
				if err != nil || got != tc.want {
					t.Errorf("got %#v, %v, want %#v", got, err, tc.want)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %s", err, tc.wantErr)
			}
			if !strings.Contains(errs.String(), tc.written) {
				t.Errorf("written %q, want %q", errs.String(), tc.written)
			}
		})
	}
}

func TestUser_Approve(t *testing.T) {
	for line, want := range map[string]struct {
		approved bool
		reason   string
	}{
		"y\n": {true, ""}, "YES\n": {true, ""}, "\n": {false, ""}, "no\n": {false, ""}, "": {false, ""}, "too late\n": {false, "too late"},
	} {
		u, _ := user(t, line)
		approved, reason, err := u.Approve(t.Context(), call())
		if approved != want.approved || reason != want.reason || err != nil {
			t.Errorf("%q: got %v %q %v, want %+v", line, approved, reason, err, want)
		}
	}
	known := &clienttool.User{Approved: []string{"decide"}}
	if approved, _, err := known.Approve(context.Background(), call()); !approved || err != nil {
		t.Errorf("a tool that was approved before: %v %v", approved, err)
	}
	u, _ := user(t, "y\n")
	u.Deny, u.Approved = true, []string{"other"}
	if approved, reason, err := u.Approve(t.Context(), call()); approved || !strings.Contains(reason, "--deny") || err != nil {
		t.Errorf("with --deny: %v %q %v", approved, reason, err)
	}
	alone := &clienttool.User{}
	if approved, reason, _ := alone.Approve(context.Background(), call()); approved || reason != "no terminal is attached" {
		t.Errorf("without a terminal: %v %q", approved, reason)
	}
}

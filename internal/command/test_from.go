package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/apptest/conversation"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// testFromCommand is one call of qtype test from.
type testFromCommand struct {
	*cli.Streams
	memoryview.Selection
	store  appflags.Store
	flow   string
	turn   int64
	input  string
	expect []string
	calls  []string
	sent   []string
	model  string // the file for recordings of the model
	full   bool   // no turns are left out
	name   string
	output string
}

func newTestFrom(s *cli.Streams) *cobra.Command {
	t := &testFromCommand{Streams: s}
	c := &cobra.Command{
		Use:   "from APP",
		Short: "Make a test of a stored conversation",
		Long: `Writes a test with the questions of a conversation, and mocks that answer as the model
and the tools did. Without --expect it expects the calls of tools of the last turn. Turns
that do not change the result are left out.`,
		Example: `  qtype test from app.qtype.yaml --session me -i '{"customer": "c-014"}' -o me.qtype-test.yaml
  qtype test from app.qtype.yaml --turn 2 -i '{"customer": "c-014"}' --expect 'reply.text contains "refund"'`,
		Args: cli.Arguments("a document: qtype test from APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return t.make(c.Context(), args[0])
		},
	}
	f := c.Flags()
	f.StringVarP(&t.Memory, "memory", "m", "", "`ID` of the memory (default: the only one)")
	f.StringVarP(&t.Session, "session", "s", "", "`ID` of the session (default: the only one)")
	f.StringVar(&t.User, "user", "", "`USER` to whom the session belongs")
	f.Int64Var(&t.turn, "turn", 0, "number of the turn that is tested, `N` (default: the newest one that its user has rated down, or the last one)")
	f.StringVarP(&t.flow, "flow", "f", "", "`ID` of the flow (default: the first one that uses the memory)")
	f.StringVarP(&t.input, "input", "i", "", "other inputs of the flow: a `JSON` object")
	f.StringArrayVar(&t.expect, "expect", nil, "what the last turn should have: an `EXPRESSION` over the outputs of the flow")
	f.StringArrayVar(&t.calls, "expect-call", nil, "which calls of a tool the last turn should have had: the `KEYS` of a call in YAML: 'id: refund, calls: 0'")
	f.StringArrayVar(&t.sent, "expect-sent", nil, "a `TEXT` that the model should have got in the last turn")
	f.StringVar(&t.model, "recordings", "", "let the model answer, with recordings in `FILE`, in place of mocks of it: for prompts that have to be corrected")
	f.BoolVar(&t.full, "all-turns", false, "leave out nothing")
	f.StringVar(&t.name, "name", "", "`NAME` of the test (default: the session and the turn)")
	f.StringVarP(&t.output, "output", "o", "", "write the test to `FILE`, *.qtype-test.yaml (default: standard output)")
	t.store.AddTo(f)
	return c
}

// make makes the test.
func (t *testFromCommand) make(ctx context.Context, path string) (err error) {
	if t.turn < 0 {
		return terminal.Usagef("--turn cannot be %d: turns are counted from 1", t.turn)
	}
	file, err := t.file(path)
	if err != nil {
		return err
	}
	app, err := openStored(ctx, t.Streams, path, &t.store)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	m, session, err := t.Conversation(ctx, app)
	if err != nil {
		return err
	}
	return t.of(ctx, app, m, session, path, file)
}

// of makes the test of a session.
func (t *testFromCommand) of(ctx context.Context, app *runtime.App, m memoryview.Memory, session, path, file string) error {
	typed := &conversation.Typed{}
	turns, err := t.turns(ctx, app, m, session, func(text string) string { return typed.Redact(app.Redactor().String(text)) })
	if err != nil {
		return fmt.Errorf("session %s: %w", session, err)
	}
	source, err := t.source(app.Spec(), m.ID, path, file)
	if err != nil {
		return err
	}
	source.Name = cmp.Or(t.name, fmt.Sprintf("Session %s, turn %d", typed.Redact(app.Redactor().String(session)), turns[len(turns)-1].Number))
	if err := t.write(ctx, source, turns, file); err != nil {
		return err
	}
	if replaced := typed.Summary(); replaced != "" {
		fmt.Fprintf(t.Err, "replaced in the conversation: %s\n", replaced)
	}
	return nil
}

// turns returns the turns of a session up to the one that is tested: by default that which its user has rated down last, or else the last one.
func (t *testFromCommand) turns(ctx context.Context, app *runtime.App, m memoryview.Memory, session string, redact func(string) string) ([]*conversation.Turn, error) {
	if t.turn == 0 {
		given, err := appstate.ReadFeedback(ctx, app.State(), m.ID, m.Conversation(session))
		if err != nil {
			return nil, err
		}
		for _, f := range slices.Backward(given) {
			if f.Verdict != appstate.Down {
				continue
			}
			if turns, err := conversation.Read(m.History(ctx, session), f.Turn, redact); err == nil { // else it was rewound
				fmt.Fprintf(t.Err, "turn %d is tested, which its user has rated down%s\n", f.Turn, strings.TrimRight(": "+terminal.Clean(redact(f.Explanation)), ": "))
				return turns, nil
			}
		}
	}
	return conversation.Read(m.History(ctx, session), t.turn, redact)
}

// testMaker makes the tests that test from writes, of conversations of a server.
func testMaker(path string) sessions.TestMaker {
	return func(ctx context.Context, served sessions.App, id, session string, turn int64) (string, error) {
		app, ok := served.(*runtime.App)
		if !ok {
			return "", errors.New("the server has no application")
		}
		var text, notes strings.Builder
		t := &testFromCommand{Streams: &cli.Streams{Streams: terminal.Streams{Out: &text, Err: &notes}}, turn: turn}
		file := filepath.Join(filepath.Dir(path), "session"+apptest.Suffixes()[0]) // so that it names the application
		if err := t.of(ctx, app, memoryview.Of(app, id), session, path, file); err != nil {
			return "", err
		}
		return "# " + strings.ReplaceAll(strings.TrimSpace(notes.String()), "\n", "\n# ") + "\n" + text.String(), nil
	}
}

// openStored returns the application of a document, whose conversations are read.
func openStored(ctx context.Context, s *cli.Streams, path string, store *appflags.Store) (*runtime.App, error) {
	p, list := qtype.Check(ctx, path)
	if err := list.Err(); err != nil {
		return nil, err
	}
	opts, err := store.Options(false)
	if err != nil {
		return nil, err
	}
	return qtype.New(p, append(opts, qtype.WithWarnings(s.Logger("warning: ")))...)
}

// file returns the name that the test file has, or would have.
func (t *testFromCommand) file(path string) (string, error) {
	if t.output == "" {
		base := strings.TrimSuffix(strings.TrimSuffix(path, filepath.Ext(path)), ".qtype")
		return base + apptest.Suffixes()[0], nil
	}
	if !slices.ContainsFunc(apptest.Suffixes(), func(s string) bool { return strings.HasSuffix(t.output, s) }) {
		return "", terminal.Usagef("-o: a test file is named *%s, not %s", apptest.Suffixes()[0], t.output)
	}
	if _, err := os.Lstat(t.output); err == nil {
		return "", terminal.Usagef("-o: %s exists: use another name", t.output)
	}
	return t.output, nil
}

// source describes the conversation.
func (t *testFromCommand) source(app *spec.Application, memory, path, file string) (*conversation.Source, error) {
	s, err := sourceOf(app, memory, t.flow, t.input)
	if err != nil {
		return nil, err
	}
	s.Expect, s.Calls, s.Sent = t.expect, t.calls, t.sent
	if filepath.Clean(apptest.Application(file, "")) != filepath.Clean(path) {
		relative, err := filepath.Rel(filepath.Dir(file), path)
		if err != nil {
			return nil, err
		}
		s.Path = filepath.ToSlash(relative)
	}
	return s, nil
}

// sourceOf describes the conversations of a memory with a flow, by default the first one that uses it. inputs is a JSON object with
// inputs that the conversations do not have; empty for none.
func sourceOf(app *spec.Application, memory, flow, inputs string) (*conversation.Source, error) {
	s := &conversation.Source{App: app}
	for _, m := range app.Memories {
		if m.ID == memory {
			s.Memory = m
		}
	}
	i := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool {
		if flow != "" {
			return f.ID == flow
		}
		return slices.ContainsFunc(f.Plan().Steps, func(p *spec.StepPlan) bool { return slices.Contains(p.Memories(), s.Memory) })
	})
	switch {
	case i < 0 && flow != "":
		return nil, terminal.Usagef("no flow has the id %q; there are: %s", flow, textfmt.List(spec.IDs(app.Flows)))
	case i < 0:
		return nil, fmt.Errorf("no flow uses memory %s", memory)
	}
	s.Flow = app.Flows[i]
	if inputs != "" {
		if err := json.Unmarshal([]byte(inputs), &s.Inputs); err != nil {
			return nil, terminal.Usagef("--input: expected a JSON object with inputs by id")
		}
	}
	return s, s.Complete()
}

// write removes what the test does not need, and writes it.
func (t *testFromCommand) write(ctx context.Context, s *conversation.Source, turns []*conversation.Turn, file string) error {
	all, err := t.run(ctx, s, turns, file)
	if err != nil {
		return err
	}
	kept := turns
	if !t.full {
		kept = t.minimize(ctx, s, turns, file, all)
	}
	s.Recordings = t.model
	text, err := s.Write(kept)
	if err != nil {
		return err
	}
	if t.output == "" {
		if _, err := fmt.Fprint(t.Out, text); err != nil {
			return err
		}
	} else if err := os.WriteFile(t.output, []byte(text), 0o600); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", t.output, terminal.Cause(err))
	}
	fmt.Fprintf(t.Err, "%d of %s, with %d of the %s of models and tools\n", len(kept), textfmt.Count(int64(len(turns)), "turn"), conversation.Calls(kept), textfmt.Count(int64(conversation.Calls(turns)), "call"))
	if t.model != "" {
		fmt.Fprintf(t.Err, "record the answers of the model with qtype test --record; if the test does not fail then, the model needs what was left out: --all-turns keeps it\n")
	}
	if t.model == "" && turns[len(turns)-1].LacksAnswer() {
		fmt.Fprintln(t.Err, "warning: the answer after which the turn failed is not stored: --recordings lets the model give it again")
	}
	switch {
	case len(all) > 0:
		fmt.Fprintf(t.Err, "the test fails: %s\n", terminal.Clean(all.String()))
	case s.Expects():
		fmt.Fprintln(t.Err, "the test passes: the conversation has what you expect")
	case t.model != "":
	default:
		fmt.Fprintln(t.Err, "the test passes; --expect adds what the last turn should have had")
	}
	return nil
}

// minimize returns the turns and calls without which the test has another outcome.
func (t *testFromCommand) minimize(ctx context.Context, s *conversation.Source, turns []*conversation.Turn, file string, all outcome) []*conversation.Turn {
	same := func(some []*conversation.Turn) bool {
		if !s.Keeps(some, turns) {
			return false
		}
		result, err := t.run(ctx, s, some, file)
		return err == nil && result.same(all)
	}
	kept := conversation.Minimize(turns, same)
	if len(all) > 0 { // else the calls are what the test expects
		kept = conversation.MinimizeCalls(kept, same)
	}
	return kept
}

// outcome is why a test fails.
type outcome diag.List

// same reports whether a test fails for the same reasons. Calls and messages that a hint lists beside them may be left out.
func (o outcome) same(other outcome) bool {
	return slices.EqualFunc(o, other, func(a, b diag.Diagnostic) bool {
		return a.Code == b.Code && a.Message == b.Message && (a.Hint == b.Hint || !strings.HasPrefix(a.Message, "the condition"))
	})
}

// String returns the reasons in one line.
func (o outcome) String() string {
	var why []string
	for _, d := range o {
		why = append(why, strings.TrimSuffix(d.Message+": "+d.Hint, ": "))
	}
	return strings.Join(why, "; ")
}

// run runs the test of some turns and returns why it fails; nil if it passes. An error means that the mocks cannot
// repeat the conversation. The error of a turn that failed is why its test fails.
func (t *testFromCommand) run(ctx context.Context, s *conversation.Source, turns []*conversation.Turn, file string) (outcome, error) {
	text, err := s.Write(turns)
	if err != nil {
		return nil, err
	}
	reports, err := qtype.Test(ctx, []string{file}, qtype.TestOptions{Content: []byte(text)})
	switch {
	case err != nil:
		return nil, err
	case reports[0].Diagnostics.Errors() > 0:
		return nil, reports[0].Diagnostics
	}
	for _, d := range reports[0].Outcomes[0].Diagnostics {
		if d.Code != apptest.Expectation.Code && !turns[len(turns)-1].Failed {
			return nil, fmt.Errorf("the conversation cannot be repeated with mocks: %s", d.Message)
		}
	}
	return outcome(reports[0].Outcomes[0].Diagnostics), nil
}

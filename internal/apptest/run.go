package apptest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Outcome is what came of one test.
type Outcome struct {
	Name   string        // the test's name
	Flow   string        // the id of the flow that was run
	Place  source.Span   // where the test stands
	Took   time.Duration // all turns together
	Faults diag.List     // why it failed; empty where it passed
}

// Passed tells whether everything was as expected.
func (o *Outcome) Passed() bool { return len(o.Faults) == 0 }

// Run runs one test of the file. A turn after one that failed is not run. The
// context's end fails the turn that it interrupts.
func (f *File) Run(ctx context.Context, t *spec.Test) *Outcome {
	flow := flowOf(f.program.App, t)
	o := &Outcome{Name: t.Name, Flow: flow.ID, Place: at(t, "name")}
	begin := time.Now()
	defer func() { o.Took = time.Since(begin) }()
	s := newStage(f.Suite, t)
	app, err := f.program.New(Env{Mocks: s.mocks(), HTTP: &http.Client{Transport: blockedTransport{}},
		Approve: func(context.Context, tool.Request) (bool, string, error) { return true, "", nil }})
	if err != nil {
		o.Faults.Add(ruleFailed.At(o.Place, "the application cannot be made ready: %s", err))
		return o
	}
	r := &testRun{app: app, flow: flow, test: t, stage: s}
	for _, turn := range t.Turns {
		s.next()
		r.turn(ctx, turn)
		if len(r.faults) > 0 {
			break
		}
	}
	if err := app.Close(ctx); err != nil {
		r.faults.Add(ruleFailed.At(o.Place, "the application cannot be closed: %s", err))
	}
	o.Faults = r.faults
	return o
}

// testRun is a test while it runs.
type testRun struct {
	app    *runtime.App
	flow   *spec.Flow
	test   *spec.Test
	stage  *testEnv
	faults diag.List
}

// turn runs one turn and checks what came of it.
func (p *testRun) turn(ctx context.Context, t *spec.Turn) {
	values := t.Inputs
	if _, only := given(p.flow); t.Input != nil {
		values = map[string]any{only: t.Input}
	}
	conditions, err := compile(t)
	if err != nil {
		p.faults.Add(ruleFailed.At(t.Place().Span(), "%s", err))
		return
	}
	input := runtime.Input{Session: p.test.Session, Values: values}
	rows, failed := 0, ""
	for row, err := range p.app.Run(ctx, p.flow.ID, slices.Values([]runtime.Input{input})) {
		switch {
		case err != nil:
			failed = err.Error()
		case row.Err != nil:
			failed = row.Err.Error()
		default:
			rows++
			p.expect(t, conditions, row)
		}
	}
	p.ending(t, rows, failed)
	for _, m := range t.Memory {
		p.window(ctx, m)
	}
	for _, s := range t.Sent {
		p.sent(s)
	}
}

func compile(t *spec.Turn) ([]*steps.Condition, error) {
	var all []*steps.Condition
	for i := range t.Expect {
		c, err := steps.NewCondition(&t.Expect[i])
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// expect checks the conditions on a row that came out.
func (p *testRun) expect(t *spec.Turn, conditions []*steps.Condition, row *runtime.Result) {
	for i, c := range conditions {
		place := t.Expect[i].Span
		holds, err := c.Holds(row.Get)
		switch {
		case err != nil:
			p.faults.Add(ruleUnmet.At(place, "the condition cannot be worked out: %s", err))
		case !holds:
			var shown []string
			for _, v := range c.Variables() {
				x, _ := row.Get(v.ID)
				shown = append(shown, v.ID+" is "+display(x))
			}
			finding := ruleUnmet.At(place, "this is not so")
			if len(shown) > 0 {
				finding = finding.WithHint("%s", strings.Join(shown, ", "))
			}
			p.faults.Add(finding)
		}
	}
}

// ending checks how many rows came out, and whether one failed.
func (p *testRun) ending(t *spec.Turn, rows int, failed string) {
	switch {
	case t.Fails == "" && failed != "":
		p.faults.Add(ruleFailed.At(turnPlace(t), "the turn failed: %s", failed))
	case t.Fails != "" && failed == "":
		p.faults.Add(ruleFailed.At(at(t, "fails"), "the turn did not fail"))
	case t.Fails != "" && !regexp.MustCompile(t.Fails).MatchString(failed):
		p.faults.Add(ruleFailed.At(at(t, "fails"), "the turn failed otherwise: %s", failed))
	case t.Rows != nil && rows != *t.Rows:
		p.faults.Add(ruleUnmet.At(at(t, "rows"), "%s came out, not %d", plural(rows, "row"), *t.Rows))
	case t.Rows == nil && rows == 0 && t.Fails == "":
		p.faults.Add(ruleUnmet.At(turnPlace(t), "no row came out").WithHint("where that is right, say rows: 0"))
	}
}

// turnPlace is what a turn gives the flow: the line that a reader looks for.
func turnPlace(t *spec.Turn) source.Span {
	for _, key := range []string{"input", "inputs"} {
		if field, ok := t.Place().Lookup(key); ok {
			return field.Span()
		}
	}
	return t.Place().Span()
}

// window checks a memory after the turn.
func (p *testRun) window(ctx context.Context, c *spec.WindowAssertion) {
	m := p.app.Memory(c.ID)
	w, err := m.Window(ctx, cmp.Or(p.test.Session, runtime.DefaultSession))
	if err != nil {
		p.faults.Add(ruleFailed.At(at(c, "id"), "memory %s: %s", c.ID, err))
		return
	}
	messages, tokens := w.Messages(), 0
	for _, said := range messages {
		tokens += m.Tokens(said)
	}
	if n := len(w.Entries); c.Messages != nil && n != *c.Messages {
		p.faults.Add(ruleUnmet.At(at(c, "messages"), "the window of %s has %s, not %d", c.ID, plural(n, "message"), *c.Messages).WithHint("%s", excerpt(texts(messages))))
	}
	if c.MaxTokens != nil && tokens > *c.MaxTokens {
		p.faults.Add(ruleUnmet.At(at(c, "max_tokens"), "the window of %s has %s, more than %d", c.ID, plural(tokens, "token"), *c.MaxTokens))
	}
	p.within(c, "the window of "+c.ID, messages, c.Contains, c.Lacks)
}

// sent checks what a model was asked.
func (p *testRun) sent(c *spec.RequestAssertion) {
	asked := p.stage.asked(c.ID)
	if c.Calls != nil && len(asked) != *c.Calls {
		p.faults.Add(ruleUnmet.At(at(c, "calls"), "the model %s was asked %s, not %d", c.ID, plural(len(asked), "time"), *c.Calls))
	}
	if len(asked) == 0 && (len(c.Contains) > 0) {
		p.faults.Add(ruleUnmet.At(at(c, "id"), "the model %s was not asked", c.ID))
	}
	var counter memory.Counter
	if made, err := p.app.Model(c.ID); err == nil {
		counter, _ = tokenizer.For(made.Info().Encoding)
	}
	for i, req := range asked {
		what := "what " + c.ID + " was sent"
		if len(asked) > 1 {
			what = fmt.Sprintf("%s (call %d of %d)", what, i+1, len(asked))
		}
		tokens := 0
		for _, m := range req.Messages {
			tokens += memory.Tokens(counter, m)
		}
		if c.MaxTokens != nil && tokens > *c.MaxTokens {
			p.faults.Add(ruleUnmet.At(at(c, "max_tokens"), "%s has %s, more than %d", what, plural(tokens, "token"), *c.MaxTokens))
		}
		p.within(c, what, req.Messages, c.Contains, c.Lacks)
	}
}

// texts are what messages say, with the tools that they call.
func texts(messages []chat.Message) []string {
	var all []string
	for _, m := range messages {
		said := m.Text()
		for _, call := range m.ToolCalls {
			said += "\n" + call.Name + call.Arguments
		}
		all = append(all, said)
	}
	return all
}

// within checks what stands in messages and what does not.
func (p *testRun) within(n spec.Node, what string, messages []chat.Message, contains, lacks []string) {
	all := texts(messages)
	has := func(text string) bool {
		return slices.ContainsFunc(all, func(said string) bool { return strings.Contains(said, text) })
	}
	for i, text := range contains {
		if !has(text) {
			p.faults.Add(ruleUnmet.At(n.Place().Field("contains").Index(i).Span(), "%s does not contain %q", what, text).WithHint("%s", excerpt(all)))
		}
	}
	for i, text := range lacks {
		if has(text) {
			p.faults.Add(ruleUnmet.At(n.Place().Field("not_contains").Index(i).Span(), "%s contains %q", what, text).WithHint("%s", excerpt(all)))
		}
	}
}

// Lengths of what a message shows, in characters.
const (
	shownValue   = 200
	shownMessage = 60
)

// excerpt shows the beginnings of messages.
func excerpt(all []string) string {
	if len(all) == 0 {
		return "there are no messages"
	}
	var shown []string
	for _, said := range all {
		shown = append(shown, quoted(said, shownMessage))
	}
	return "there are " + strings.Join(shown, ", ")
}

// display shows a value in one line.
func display(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quoted(v, shownValue)
	case chat.Message:
		return "a message with the text " + quoted(v.Text(), shownValue)
	}
	if v == any(value.Unset) {
		return "not set"
	}
	return short(string(value.JSON(v)), shownValue)
}

func quoted(text string, most int) string { return strconv.Quote(short(text, most)) }

func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// plural counts things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

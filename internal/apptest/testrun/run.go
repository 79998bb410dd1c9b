package testrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Outcome is the result of a test.
type Outcome struct {
	Name        string        // of the test
	Flow        string        // the id of the flow of the last turn
	Position    source.Span   // of the test's name
	Took        time.Duration // of all turns
	Diagnostics diag.List     // why the test failed; empty if it passed
	Details     string        // what differs from the recordings, one change a line; empty for none

	Trials       int // how often the test was run, at least 1
	PassedTrials int

	stale  int              // recordings that the test has not used
	commit func(prune bool) // puts the recorded calls into the file
}

// Passed reports whether all expectations were met.
func (o *Outcome) Passed() bool { return len(o.Diagnostics) == 0 }

// Run runs the trials of one test of the file. A trial stops after the first turn that fails.
// Canceling ctx fails the current turn.
func (f *File) Run(ctx context.Context, t *spec.Test) *Outcome {
	o := &Outcome{Name: t.Name, Flow: apptest.FlowOf(f.program.App, t, t.Turns[len(t.Turns)-1]).ID, Position: apptest.SpanOf(t, "name"),
		Trials: max(1, cmp.Or(f.Trials, t.Trials, f.Suite.Trials)), commit: func(bool) {}}
	begin := time.Now()
	recorded := f.session(t.Name)
	for i := range o.Trials {
		list, details := f.trial(ctx, t, recorded, i)
		switch {
		case len(list) == 0:
			o.PassedTrials++
		case len(o.Diagnostics) == 0:
			o.Diagnostics, o.Details = list, details
		}
		if ctx.Err() != nil {
			break
		}
	}
	o.decide(t)
	if recorded != nil {
		o.commit = recorded.Commit
		if o.Passed() {
			o.stale = recorded.Stale()
		}
	}
	o.Took = time.Since(begin)
	return o
}

// decide discards why trials failed if as many as the test needs have passed.
func (o *Outcome) decide(t *spec.Test) {
	needed := 1.0
	if t.PassRate != nil {
		needed = *t.PassRate
	}
	const rounding = 1e-9
	switch {
	case len(o.Diagnostics) == 0:
	case float64(o.PassedTrials) >= needed*float64(o.Trials)-rounding:
		o.Diagnostics, o.Details = nil, ""
	case o.Trials > 1:
		sum := apptest.Expectation.At(apptest.SpanOf(t, "pass_rate"), "%d of %d trials passed: the test needs a rate of %v", o.PassedTrials, o.Trials, needed).WithHint("why the first of the others failed follows")
		o.Diagnostics = append(diag.List{sum}, o.Diagnostics...)
	}
}

// trial runs a test once. n is the number of the trial, from 0.
func (f *File) trial(ctx context.Context, t *spec.Test, recorded *recording.Session, n int) (list diag.List, details string) {
	s, place := newTestEnv(f, t, recorded), apptest.SpanOf(t, "name")
	if err := s.copyFixtures(); err != nil {
		return diag.List{apptest.Failed.At(place, "the fixtures cannot be copied: %s", errors.Join(err, s.close()))}, ""
	}
	app, err := f.program.New(Env{Mocks: s.mocks(), HTTP: s.httpClient(),
		Approve: s.approve})
	if err != nil {
		return diag.List{apptest.Failed.At(place, "the application cannot be started: %s", errors.Join(err, s.close()))}, ""
	}
	if s.session != nil {
		HideSecrets(s.session, app)
	}
	r := &testRun{app: app, test: t, env: s}
	for i, turn := range t.Turns {
		s.startTurn(n*len(t.Turns)+i+1, turn.Reject)
		r.runTurn(ctx, turn, apptest.FlowOf(f.program.App, t, turn))
		if len(r.diagnostics) > 0 {
			break
		}
	}
	if err := errors.Join(app.Close(ctx), s.close()); err != nil {
		r.diagnostics.Add(apptest.Failed.At(place, "the application cannot be closed: %s", err))
	}
	return r.diagnostics, r.details
}

// testRun is a running test.
type testRun struct {
	app         *runtime.App
	test        *spec.Test
	env         *testEnv
	diagnostics diag.List
	details     string // see Outcome.Details
}

// runTurn runs a turn through a flow and checks its results.
func (r *testRun) runTurn(ctx context.Context, t *spec.Turn, flow *spec.Flow) {
	if r.checkEffects(t, flow); len(r.diagnostics) > 0 {
		return
	}
	values := t.Inputs
	if _, only := apptest.InputsOf(flow); t.Input != nil {
		values = map[string]any{only: t.Input}
	}
	conditions, err := compile(t)
	if err != nil {
		r.diagnostics.Add(apptest.Failed.At(t.Position().Span(), "%s", err))
		return
	}
	input := runtime.Input{Session: r.session(), Values: values, Base: mediafile.BaseOf(t.Position().Span().File.Path)}
	rows, failed := 0, ""
	for row, err := range r.app.Run(ctx, flow.ID, slices.Values([]runtime.Input{input}), runtime.WithEvents(r.env.addCall, steps.EventToolCall)) {
		switch {
		case err != nil:
			failed = err.Error()
		case row.Err != nil:
			failed = row.Err.Error()
		default:
			rows++
			r.checkConditions(ctx, t, conditions, row)
		}
	}
	r.checkEnd(t, rows, failed)
	for _, m := range t.Memory {
		r.checkWindow(ctx, m)
	}
	for _, s := range t.Sent {
		r.checkRequests(s)
	}
	r.checkCalls(t)
	r.diagnostics.Add(CheckRows(r.env.state, t.State)...)
	for _, a := range t.Files {
		r.checkFile(a)
	}
	r.checkRecorded(t)
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

// checkConditions checks the conditions on a result row.
func (r *testRun) checkConditions(ctx context.Context, t *spec.Turn, conditions []*steps.Condition, row *runtime.Result) {
	for i, c := range conditions {
		place := t.Expect[i].Span
		holds, err := c.Holds(ctx, row.Get)
		switch {
		case err != nil:
			r.diagnostics.Add(apptest.Expectation.At(place, "the condition cannot be evaluated: %s", err))
		case !holds:
			var shown []string
			for _, v := range c.Variables() {
				x, _ := row.Get(v.ID)
				shown = append(shown, v.ID+" is "+formatValue(x))
			}
			d := apptest.Expectation.At(place, "the condition is false")
			if len(shown) > 0 {
				d = d.WithHint("%s", strings.Join(shown, ", "))
			}
			r.diagnostics.Add(d)
		}
	}
}

// checkEnd checks the number of rows and whether the turn failed.
func (r *testRun) checkEnd(t *spec.Turn, rows int, failed string) {
	switch {
	case t.Fails == "" && failed != "":
		r.diagnostics.Add(apptest.Failed.At(turnSpan(t), "the turn failed: %s", failed))
	case t.Fails != "" && failed == "":
		r.diagnostics.Add(apptest.Failed.At(apptest.SpanOf(t, "fails"), "the turn did not fail"))
	case t.Fails != "" && !regexp.MustCompile(t.Fails).MatchString(failed):
		r.diagnostics.Add(apptest.Failed.At(apptest.SpanOf(t, "fails"), "the turn failed with another error: %s", failed))
	case t.Rows != nil && rows != *t.Rows:
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(t, "rows"), "the turn has %s, not %d", textfmt.Count(rows, "row"), *t.Rows))
	case t.Rows == nil && rows == 0 && t.Fails == "":
		r.diagnostics.Add(apptest.Expectation.At(turnSpan(t), "the turn has no rows").WithHint("if this is expected, set rows: 0"))
	}
}

// turnSpan returns the position of a turn's input, which represents the turn in
// diagnostics.
func turnSpan(t *spec.Turn) source.Span {
	for _, key := range []string{"input", "inputs"} {
		if field, ok := t.Position().Lookup(key); ok {
			return field.Span()
		}
	}
	return t.Position().Span()
}

// session returns the session of the test's turns. Tests share no memory, so all that
// name none can have the same id.
func (r *testRun) session() string { return cmp.Or(r.test.Session, "default") }

// checkWindow checks a memory after the turn.
func (r *testRun) checkWindow(ctx context.Context, c *spec.WindowAssertion) {
	m := r.app.Memory(c.ID)
	w, err := m.Window(ctx, r.session())
	if err != nil {
		r.diagnostics.Add(apptest.Failed.At(apptest.SpanOf(c, "id"), "memory %s: %s", c.ID, err))
		return
	}
	messages, tokens := w.Messages(), 0
	for _, message := range messages {
		tokens += m.Tokens(message)
	}
	if n := len(w.Entries); c.Messages != nil && n != *c.Messages {
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(c, "messages"), "the window of %s has %s, not %d", c.ID, textfmt.Count(n, "message"), *c.Messages).WithHint("%s", excerpt(textsOf(messages))))
	}
	if c.MaxTokens != nil && tokens > *c.MaxTokens {
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(c, "max_tokens"), "the window of %s has %s, more than %d", c.ID, textfmt.Count(tokens, "token"), *c.MaxTokens))
	}
	r.checkContents(c, "the window of "+c.ID, messages, c.Contains, c.Lacks)
}

// checkRequests checks the requests to a model.
func (r *testRun) checkRequests(c *spec.RequestAssertion) {
	requests := r.env.requestsTo(c.ID)
	if c.Calls != nil && len(requests) != *c.Calls {
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(c, "calls"), "model %s was called %s, not %d", c.ID, textfmt.Count(len(requests), "time"), *c.Calls))
	}
	if len(requests) == 0 && len(c.Contains)+len(c.SomeContain) > 0 {
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(c, "id"), "model %s was not called", c.ID))
	}
	r.checkSome(c, requests)
	var counter memory.Counter
	if made, err := r.app.Model(c.ID); err == nil {
		counter, _ = tokenizer.For(made.Info().Encoding)
	}
	for i, req := range requests {
		what := "the request to " + c.ID
		if len(requests) > 1 {
			what = fmt.Sprintf("%s (call %d of %d)", what, i+1, len(requests))
		}
		tokens := 0
		for _, m := range req.Messages {
			tokens += memory.Tokens(counter, m)
		}
		if c.MaxTokens != nil && tokens > *c.MaxTokens {
			r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(c, "max_tokens"), "%s has %s, more than %d", what, textfmt.Count(tokens, "token"), *c.MaxTokens))
		}
		r.checkContents(c, what, req.Messages, c.Contains, c.Lacks)
	}
}

// textsOf returns the texts of messages, with their tool calls.
func textsOf(messages []chat.Message) []string {
	var all []string
	for _, m := range messages {
		content := m.Text()
		for _, call := range m.Calls() {
			content += "\n" + call.Name + call.Arguments
		}
		all = append(all, content)
	}
	return all
}

// checkContents checks which texts messages contain.
func (r *testRun) checkContents(n spec.Node, what string, messages []chat.Message, contains, lacks []string) {
	all := textsOf(messages)
	has := func(text string) bool {
		return slices.ContainsFunc(all, func(content string) bool { return strings.Contains(content, text) })
	}
	for i, text := range contains {
		if !has(text) {
			r.diagnostics.Add(apptest.Expectation.At(n.Position().Field("contains").Index(i).Span(), "%s does not contain %q", what, text).WithHint("%s", excerpt(all)))
		}
	}
	for i, text := range lacks {
		if has(text) {
			r.diagnostics.Add(apptest.Expectation.At(n.Position().Field("not_contains").Index(i).Span(), "%s contains %q", what, text).WithHint("%s", excerpt(all)))
		}
	}
}

// Limits of values in diagnostics, in characters.
const (
	maxShownValue   = 200
	maxShownMessage = 60
)

// excerpt lists the starts of messages.
func excerpt(all []string) string {
	if len(all) == 0 {
		return "no messages"
	}
	var shown []string
	for _, content := range all {
		shown = append(shown, quote(content, maxShownMessage))
	}
	return "messages: " + strings.Join(shown, ", ")
}

// formatValue formats a value in one line.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quote(v, maxShownValue)
	case chat.Message:
		return "a message with the text " + quote(v.Text(), maxShownValue)
	}
	if v == any(value.Unset) {
		return "not set"
	}
	return textfmt.Ellipsis(string(value.JSON(v)), maxShownValue)
}

func quote(text string, most int) string { return strconv.Quote(textfmt.Ellipsis(text, most)) }

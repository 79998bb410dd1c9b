package apptest

import (
	"cmp"
	"embed"
	"regexp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/validate"
)

// checker checks a test file against its application.
type checker struct {
	app   *spec.Application
	list  diag.List
	suite *spec.Suite
}

func (c *checker) checkSuite(s *spec.Suite) {
	c.suite = s
	c.checkMocks(s.Models, s.Tools, []mockstate.Tables{s.State}, false)
	c.checkAllow(s, s.Allow)
	c.checkFixtures(s, s.Fixtures)
	if len(s.Tests) == 0 && s.Position().Complete("tests") {
		c.list.Add(ruleInvalid.At(SpanOf(s, "tests"), "the file has no tests").WithHint("add one with a name and turns"))
	}
	for i, t := range s.Tests {
		if t == nil {
			continue // a value with an error that is reported already
		}
		if strings.TrimSpace(t.Name) == "" && t.Position().Complete("name") {
			if field, ok := t.Position().Lookup("name"); ok {
				c.list.Add(ruleInvalid.At(field.Span(), "the test's name is empty").WithHint("describe what the test checks"))
			}
		}
		if j := slices.IndexFunc(s.Tests, func(o *spec.Test) bool { return o != nil && o.Name == t.Name }); j < i && t.Name != "" {
			c.list.Add(ruleUnknown.At(SpanOf(t, "name"), "duplicate test name %q", t.Name).WithRelated(SpanOf(s.Tests[j], "name"), "first used here"))
		}
		c.checkTest(t)
	}
}

// SpanOf returns the position of a key, or that of the node if it has no such key.
func SpanOf(n spec.Node, key string) source.Span {
	if field, ok := n.Position().Lookup(key); ok {
		return field.Span()
	}
	return n.Position().Span()
}

// checkID reports an unknown id.
func (c *checker) checkID(place source.Span, noun, id string, ids []string) {
	if id == "" || slices.Contains(ids, id) {
		return // a missing id is reported already
	}
	d := ruleUnknown.At(place, "no %s has the id %q", noun, id)
	if len(ids) > 0 && diag.Nearest(id, ids) == "" {
		d = d.WithHint("available: %s", strings.Join(ids, ", "))
	}
	c.list.Add(d.WithNearest(id, ids))
}

func (c *checker) checkTest(t *spec.Test) {
	c.checkMocks(t.Models, t.Tools, []mockstate.Tables{c.suite.State, t.State}, slices.ContainsFunc(NonNil(t.Turns), func(turn *spec.Turn) bool { return turn.Fails != "" }))
	c.checkAllow(t, t.Allow)
	c.checkFixtures(t, t.Fixtures)
	ids, named := spec.IDs(c.app.Flows), true
	c.checkID(SpanOf(t, "flow"), "flow", t.Flow, ids)
	if len(t.Turns) == 0 && t.Position().Complete("turns") {
		c.list.Add(ruleInvalid.At(SpanOf(t, "turns"), "the test has no turns").WithHint("add one, such as {input: Hello}"))
	}
	for _, turn := range t.Turns {
		if turn == nil {
			continue
		}
		c.checkID(SpanOf(turn, "flow"), "flow", turn.Flow, ids)
		if flow := FlowOf(c.app, t, turn); flow != nil {
			c.checkTurn(turn, flow)
			c.checkRows(turn.State, c.suite.State, t.State)
			c.checkFiles(t, turn)
		} else if t.Flow == "" && turn.Flow == "" {
			named = false
		}
	}
	if !named {
		c.list.Add(ruleUnknown.At(SpanOf(t, "name"), "the test does not name its flow").WithHint("set flow to one of %s", strings.Join(ids, ", ")))
	}
}

// NonNil removes the values that could not be read.
func NonNil[T any](all []*T) []*T {
	return slices.DeleteFunc(slices.Clone(all), func(one *T) bool { return one == nil })
}

// FlowOf returns the flow that a turn of a test runs; nil if it is ambiguous or unknown.
func FlowOf(app *spec.Application, t *spec.Test, turn *spec.Turn) *spec.Flow {
	id := cmp.Or(turn.Flow, t.Flow)
	if id == "" && len(app.Flows) == 1 {
		return app.Flows[0]
	}
	i := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool { return f.ID == id })
	if i < 0 {
		return nil
	}
	return app.Flows[i]
}

// InputsOf returns the ids of a flow's inputs, and the id of the one that the
// key input sets: the only input, or the only required one.
func InputsOf(flow *spec.Flow) (ids []string, only string) {
	var needed []string
	for i := range flow.Inputs {
		v := flow.Inputs[i].To
		ids = append(ids, v.ID)
		if !v.IsOptional() {
			needed = append(needed, v.ID)
		}
	}
	switch {
	case len(needed) == 1:
		return ids, needed[0]
	case len(ids) == 1:
		return ids, ids[0]
	}
	return ids, ""
}

func (c *checker) checkTurn(t *spec.Turn, flow *spec.Flow) {
	ids, only := InputsOf(flow)
	if field, ok := t.Position().Lookup("input"); ok {
		switch {
		case len(t.Inputs) > 0:
			c.list.Add(ruleInvalid.At(field.Key, "the turn has input and inputs").WithHint("use one of them"))
		case only == "":
			c.list.Add(ruleInvalid.At(field.Key, "flow %s has %d inputs", flow.ID, len(ids)).WithHint("use inputs with their ids: %s", strings.Join(ids, ", ")))
		}
	}
	if field, ok := t.Position().Lookup("inputs"); ok {
		for _, part := range field.Parts {
			c.checkID(part.Key, "input of flow "+flow.ID, part.Name, ids)
			c.checkType(t, flow, part.Name, t.Inputs[part.Name], part.Span())
		}
	}
	if t.Input != nil && only != "" {
		c.checkType(t, flow, only, t.Input, SpanOf(t, "input"))
	}
	c.checkRequired(t, flow)
	c.checkPattern(SpanOf(t, "fails"), t.Fails)
	if t.Fails != "" && len(t.Expect) > 0 {
		c.list.Add(ruleInvalid.At(SpanOf(t, "expect"), "a row that fails has no outputs to check").WithRelated(SpanOf(t, "fails"), "expected to fail"))
		return
	}
	if t.Rows != nil && *t.Rows == 0 && len(t.Expect) > 0 {
		c.list.Add(ruleInvalid.At(SpanOf(t, "expect"), "a turn without rows has no outputs to check").WithRelated(SpanOf(t, "rows"), "no rows are expected"))
		return
	}
	c.checkConditions(t.Expect, flow)
	for _, m := range NonNil(t.Memory) {
		c.checkID(SpanOf(m, "id"), "memory", m.ID, spec.IDs(c.app.Memories))
	}
	for _, s := range NonNil(t.Sent) {
		c.checkID(SpanOf(s, "id"), "chat model", s.ID, spec.IDs(chatModels(c.app)))
	}
	c.checkReject(t, flow)
	c.checkCalls(t, t.Calls, t.CallOrder)
}

// checkConditions checks conditions over the outputs of a flow.
func (c *checker) checkConditions(conditions []spec.Expression, flow *spec.Flow) {
	var outputs []*spec.Variable
	for i := range flow.Outputs {
		outputs = append(outputs, flow.Outputs[i].To)
	}
	for i := range conditions {
		if conditions[i].IsZero() {
			continue // a value with an error that is reported already
		}
		c.list.Add(validate.Condition(&conditions[i], outputs)...)
	}
}

// checkReject checks that an agent of the flow asks before it calls the tools whose calls a turn rejects.
func (c *checker) checkReject(t *spec.Turn, flow *spec.Flow) {
	ids := spec.IDs(c.app.Tools)
	var approved []string
	for s := range flow.Plan().All() {
		approved = append(approved, s.ApprovedTools()...)
	}
	for i, id := range t.Reject {
		place := t.Position().Field("reject").Index(i).Span()
		switch {
		case !slices.Contains(ids, id):
			c.checkID(place, "tool", id, ids)
		case !slices.Contains(approved, id):
			c.list.Add(ruleInvalid.At(place, "no agent of flow %s has tool %s under approve: its calls cannot be rejected", flow.ID, id).
				WithHint("add it to approve of the agent, or remove it here").WithNearest(id, approved))
		}
	}
}

// checkCalls checks the tools that calls and call_order of a turn, or of the checks of a user, name.
func (c *checker) checkCalls(t spec.Node, calls []*spec.CallAssertion, order []string) {
	ids := spec.IDs(c.app.Tools)
	if place, ok := t.Position().Lookup("call_order"); ok && len(order) == 0 && t.Position().Complete("call_order") {
		c.list.Add(ruleInvalid.At(place.Span(), "an empty call_order asserts nothing").WithHint("name the tools in their order; calls: [{id: …, calls: 0}] asserts that a tool is not called"))
	}
	for i, id := range order {
		place := t.Position().Field("call_order").Index(i).Span()
		c.checkID(place, "tool", id, ids)
		if ToolName(c.app, id) == "" && slices.Contains(ids, id) {
			c.list.Add(ruleInvalid.At(place, "tool %s has several functions", id).WithHint("its functions have no order; calls: with function: counts them"))
		}
	}
	for _, a := range NonNil(calls) {
		c.checkID(SpanOf(a, "id"), "tool", a.ID, ids)
		if slices.Contains(ids, a.ID) && a.Function == "" && ToolName(c.app, a.ID) == "" && a.Position().Complete("function") {
			c.list.Add(ruleInvalid.At(SpanOf(a, "id"), "tool %s has several functions", a.ID).WithHint("add function: with the name that models see"))
		}
		if name := ToolName(c.app, a.ID); a.Function != "" && name != "" && a.Function != name {
			c.list.Add(ruleUnknown.At(SpanOf(a, "function"), "tool %s has no function %q", a.ID, a.Function).WithSuggestion(name))
		}
		if slices.Contains(ids, a.ID) && a.Calls == nil && a.Rejected == nil && len(a.Arguments) == 0 && a.Position().Complete("calls", "rejected", "arguments") {
			c.list.Add(ruleInvalid.At(SpanOf(a, "id"), "nothing is asserted on the calls of tool %s", a.ID).WithHint("write calls, arguments or rejected"))
		}
	}
}

// ToolName returns the name by which models call a tool; empty for an unknown tool and for one with several functions.
func ToolName(app *spec.Application, id string) string {
	for _, t := range app.Tools {
		if t.EntityID() == id {
			return t.Common().Name
		}
	}
	return ""
}

// checkRequired reports required inputs of a flow that a turn lacks. A turn that fails may lack one.
func (c *checker) checkRequired(t *spec.Turn, flow *spec.Flow) {
	_, only := InputsOf(flow)
	if t.Fails != "" || !t.Position().Complete("input", "inputs", "fails") || t.Input != nil && only == "" {
		return
	}
	for name := range t.Inputs {
		if !slices.ContainsFunc(flow.Inputs, func(r spec.Ref[*spec.Variable]) bool { return r.To.ID == name }) {
			return // the name that is reported may be meant
		}
	}
	for _, ref := range flow.Inputs {
		v := ref.To
		if _, given := t.Inputs[v.ID]; given || v.IsOptional() || t.Input != nil && v.ID == only {
			continue
		}
		c.list.Add(ruleInvalid.At(spanOfTurn(t), "the turn lacks the input %s (%s) of flow %s", v.ID, v.Type, flow.ID).WithHint("add it, or write fails: with the error that is expected"))
	}
}

// spanOfTurn returns the position of the inputs of a turn, or that of the turn if it has none.
func spanOfTurn(t *spec.Turn) source.Span {
	if _, ok := t.Position().Lookup("inputs"); ok {
		return SpanOf(t, "inputs")
	}
	return SpanOf(t, "input")
}

// checkType reports a value that is not of the type of an input. A turn that fails may have
// one, and media may be the names of files.
func (c *checker) checkType(t *spec.Turn, flow *spec.Flow, id string, v any, place source.Span) {
	i := slices.IndexFunc(flow.Inputs, func(r spec.Ref[*spec.Variable]) bool { return r.To.ID == id })
	if i < 0 || v == nil || t.Fails != "" || !t.Position().Complete() {
		return
	}
	of := flow.Inputs[i].To.Type
	if !isChecked(of) {
		return
	}
	if _, err := value.Coerce(of, v); err != nil {
		c.list.Add(ruleInvalid.At(place, "input %s: %s", id, err))
	}
}

func (c *checker) checkPattern(place source.Span, text string) {
	if _, err := regexp.Compile(text); err != nil {
		c.list.Add(ruleInvalid.At(place, "invalid regular expression %q: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
}

// The rules; package testrun reports the ones about runs. TestRules_Examples runs their examples.
var (
	ruleUnknown = diag.Rule{Code: "QT801", Severity: diag.Error}
	ruleInvalid = diag.Rule{Code: "QT802", Severity: diag.Error}
	Expectation = diag.Rule{Code: "QT803", Severity: diag.Error}
	Failed      = diag.Rule{Code: "QT804", Severity: diag.Error}
	Changed     = diag.Rule{Code: "QT805", Severity: diag.Error}
	Stale       = diag.Rule{Code: "QT806", Severity: diag.Warning}
	ruleMock    = diag.Rule{Code: "QT807", Severity: diag.Warning}
)

//go:embed rules/*.md
var texts embed.FS

// Rules returns the rules in the order of their codes.
func Rules() []diag.Rule {
	return ruletext.Must(texts, ruleUnknown, ruleInvalid, Expectation, Failed, Changed, Stale, ruleMock)
}

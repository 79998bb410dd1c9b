package apptest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model/mock"
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
	c.checkMocks(s.Models, s.Tools)
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
	c.checkMocks(t.Models, t.Tools)
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
	c.checkPattern(SpanOf(t, "fails"), t.Fails)
	if t.Fails != "" && len(t.Expect) > 0 {
		c.list.Add(ruleInvalid.At(SpanOf(t, "expect"), "a row that fails has no outputs to check").WithRelated(SpanOf(t, "fails"), "expected to fail"))
		return
	}
	var outputs []*spec.Variable
	for i := range flow.Outputs {
		outputs = append(outputs, flow.Outputs[i].To)
	}
	for i := range t.Expect {
		if t.Expect[i].IsZero() {
			continue // a value with an error that is reported already
		}
		c.list.Add(validate.Condition(&t.Expect[i], outputs)...)
	}
	for _, m := range NonNil(t.Memory) {
		c.checkID(SpanOf(m, "id"), "memory", m.ID, spec.IDs(c.app.Memories))
	}
	for _, s := range NonNil(t.Sent) {
		c.checkID(SpanOf(s, "id"), "chat model", s.ID, spec.IDs(chatModels(c.app)))
	}
}

// checkType reports a value that is not of the type of an input. A turn that fails may have
// one, and media may be the names of files.
func (c *checker) checkType(t *spec.Turn, flow *spec.Flow, id string, v any, place source.Span) {
	i := slices.IndexFunc(flow.Inputs, func(r spec.Ref[*spec.Variable]) bool { return r.To.ID == id })
	if i < 0 || v == nil || t.Fails != "" || !t.Position().Complete() {
		return
	}
	of := flow.Inputs[i].To.Type
	item := of
	for item.Elem != nil {
		item = *item.Elem
	}
	if !item.IsPrimitive() || item.IsMedia() {
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

func (c *checker) checkMocks(models []*spec.ModelMock, tools []*spec.ToolMock) {
	for _, m := range NonNil(models) {
		declared := chatModels(c.app)
		c.checkID(SpanOf(m, "id"), "chat model", m.ID, spec.IDs(declared))
		if i := slices.IndexFunc(declared, func(d *spec.Model) bool { return d.ID == m.ID }); i >= 0 && m.Position().Complete() {
			if _, err := mock.New(WithMock(declared[i], m), mock.Options{}); err != nil {
				_, why, _ := strings.Cut(err.Error(), ": ")
				c.list.Add(ruleInvalid.At(SpanOf(m, "rules"), "%s", why))
			}
		}
	}
	for _, t := range NonNil(tools) {
		c.checkID(SpanOf(t, "id"), "tool", t.ID, spec.IDs(allTools(c.app)))
		_, result := t.Position().Lookup("result")
		_, fails := t.Position().Lookup("error")
		if result == fails && t.Position().Complete() {
			c.list.Add(ruleInvalid.At(SpanOf(t, "id"), "the mock of tool %q needs a result or an error", t.ID).WithHint("set one of them"))
		}
	}
}

// chatModels returns the chat models of an application and its references.
func chatModels(app *spec.Application) []*spec.Model {
	var all []*spec.Model
	for _, d := range app.Documents() {
		for _, m := range d.Models {
			if chat, ok := m.(*spec.Model); ok {
				all = append(all, chat)
			}
		}
	}
	return all
}

// allTools returns the tools of an application and its references.
func allTools(app *spec.Application) []spec.Tool {
	var all []spec.Tool
	for _, d := range app.Documents() {
		all = append(all, d.Tools...)
	}
	return all
}

// WithMock returns a copy of a model that answers by the rules of a mock. It keeps
// the id and the settings that decide how tokens are counted.
func WithMock(m *spec.Model, d *spec.ModelMock) *spec.Model {
	mocked := *m
	mocked.Provider, mocked.Rules = "mock", d.Rules
	return &mocked
}

package apptest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model/mock"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
)

// checker holds a file of tests against its application.
type checker struct {
	app  *spec.Application
	list diag.List
}

// suite checks the file.
func (c *checker) suite(s *spec.Suite) {
	c.doubles(s.Models, s.Tools)
	if len(s.Tests) == 0 && s.Place().Complete("tests") {
		c.list.Add(ruleUnclear.At(at(s, "tests"), "there are no tests").WithHint("give one a name and turns"))
	}
	for i, t := range s.Tests {
		if t == nil {
			continue // it could not be read, which is told
		}
		if strings.TrimSpace(t.Name) == "" && t.Place().Complete("name") {
			if field, ok := t.Place().Lookup("name"); ok {
				c.list.Add(ruleUnclear.At(field.Span(), "the test's name is empty").WithHint("it tells what is tested"))
			}
		}
		if j := slices.IndexFunc(s.Tests, func(o *spec.Test) bool { return o != nil && o.Name == t.Name }); j < i && t.Name != "" {
			c.list.Add(ruleUnknown.At(at(t, "name"), "another test is named %q", t.Name).WithRelated(at(s.Tests[j], "name"), "first named here"))
		}
		c.test(t)
	}
}

// at is the place of a node's value, of the node where it has none.
func at(n spec.Node, key string) source.Span {
	if field, ok := n.Place().Lookup(key); ok {
		return field.Span()
	}
	return n.Place().Span()
}

// known reports an id that is not one of those there are.
func (c *checker) known(place source.Span, noun, id string, ids []string) {
	if id == "" || slices.Contains(ids, id) {
		return // one that is missing is told already
	}
	finding := ruleUnknown.At(place, "no %s has the id %q", noun, id)
	if len(ids) > 0 && diag.Nearest(id, ids) == "" {
		finding = finding.WithHint("there are %s", strings.Join(ids, ", "))
	}
	c.list.Add(finding.WithNearest(id, ids))
}

func (c *checker) test(t *spec.Test) {
	c.doubles(t.Models, t.Tools)
	flow := flowOf(c.app, t)
	if flow == nil {
		ids := idsOf(c.app.Flows)
		if t.Flow != "" {
			c.known(at(t, "flow"), "flow", t.Flow, ids)
		} else {
			c.list.Add(ruleUnknown.At(at(t, "name"), "the test does not say which flow it runs").WithHint("flow: names one of %s", strings.Join(ids, ", ")))
		}
		return
	}
	if len(t.Turns) == 0 && t.Place().Complete("turns") {
		c.list.Add(ruleUnclear.At(at(t, "turns"), "the test has no turns").WithHint("give it one, such as {input: Hello}"))
	}
	for _, turn := range t.Turns {
		if turn != nil {
			c.turn(turn, flow)
		}
	}
}

// compact leaves out what could not be read.
func compact[T any](all []*T) []*T {
	return slices.DeleteFunc(slices.Clone(all), func(one *T) bool { return one == nil })
}

// flowOf is the flow that a test runs; nil where it is not clear which.
func flowOf(app *spec.Application, t *spec.Test) *spec.Flow {
	if t.Flow == "" && len(app.Flows) == 1 {
		return app.Flows[0]
	}
	i := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool { return f.ID == t.Flow })
	if i < 0 {
		return nil
	}
	return app.Flows[i]
}

func idsOf[E spec.Entity](all []E) []string {
	var ids []string
	for _, e := range all {
		ids = append(ids, e.EntityID())
	}
	return ids
}

// given are the inputs that a flow has, and the one that input stands for: the
// only one, or the only one that must be given.
func given(flow *spec.Flow) (ids []string, only string) {
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

func (c *checker) turn(t *spec.Turn, flow *spec.Flow) {
	ids, only := given(flow)
	if field, ok := t.Place().Lookup("input"); ok {
		switch {
		case len(t.Inputs) > 0:
			c.list.Add(ruleUnclear.At(field.Key, "the turn has input and inputs").WithHint("one of them says everything"))
		case only == "":
			c.list.Add(ruleUnclear.At(field.Key, "flow %s has not one input, but %d", flow.ID, len(ids)).WithHint("inputs: gives them by their ids: %s", strings.Join(ids, ", ")))
		}
	}
	if field, ok := t.Place().Lookup("inputs"); ok {
		for _, part := range field.Parts {
			c.known(part.Key, "input of flow "+flow.ID, part.Name, ids)
		}
	}
	c.pattern(at(t, "fails"), t.Fails)
	if t.Fails != "" && len(t.Expect) > 0 {
		c.list.Add(ruleUnclear.At(at(t, "expect"), "a row that fails has no outputs to expect anything of").WithRelated(at(t, "fails"), "it is to fail"))
		return
	}
	var outputs []*spec.Variable
	for i := range flow.Outputs {
		outputs = append(outputs, flow.Outputs[i].To)
	}
	for i := range t.Expect {
		if t.Expect[i].IsZero() {
			continue // it could not be read, which is told
		}
		c.list.Add(validate.Condition(&t.Expect[i], outputs)...)
	}
	for _, m := range compact(t.Memory) {
		c.known(at(m, "id"), "memory", m.ID, idsOf(c.app.Memories))
	}
	for _, s := range compact(t.Sent) {
		c.known(at(s, "id"), "chat model", s.ID, idsOf(chatModels(c.app)))
	}
}

func (c *checker) pattern(place source.Span, text string) {
	if _, err := regexp.Compile(text); err != nil {
		c.list.Add(ruleUnclear.At(place, "%q is no regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
}

func (c *checker) doubles(models []*spec.ModelMock, tools []*spec.ToolMock) {
	for _, m := range compact(models) {
		declared := chatModels(c.app)
		c.known(at(m, "id"), "chat model", m.ID, idsOf(declared))
		if i := slices.IndexFunc(declared, func(d *spec.Model) bool { return d.ID == m.ID }); i >= 0 && m.Place().Complete() {
			if _, err := mock.New(mocked(declared[i], m), mock.Options{}); err != nil {
				_, why, _ := strings.Cut(err.Error(), ": ")
				c.list.Add(ruleUnclear.At(at(m, "rules"), "%s", why))
			}
		}
	}
	for _, t := range compact(tools) {
		c.known(at(t, "id"), "tool", t.ID, idsOf(allTools(c.app)))
		_, result := t.Place().Lookup("result")
		_, fails := t.Place().Lookup("error")
		if result == fails && t.Place().Complete() {
			c.list.Add(ruleUnclear.At(at(t, "id"), "the double of tool %q needs a result or an error", t.ID).WithHint("one of them, not both"))
		}
	}
}

// chatModels are the chat models of an application and of what it references.
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

// allTools are the tools of an application and of what it references.
func allTools(app *spec.Application) []spec.Tool {
	var all []spec.Tool
	for _, d := range app.Documents() {
		all = append(all, d.Tools...)
	}
	return all
}

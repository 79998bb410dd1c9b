package validate

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// call is a step that invokes a tool or a flow.
type call struct {
	step    spec.Step
	kind    callKind
	id      string // of the tool or flow
	inputs  []*spec.Variable
	outputs []*spec.Variable
	in, out spec.Bindings

	inKnown, outKnown bool // all inputs and all outputs of the tool or flow could be read
}

// callKind is what a step with bindings invokes.
type callKind string

const (
	toolCall callKind = "tool"
	flowCall callKind = "flow"
)

// onCall returns a check of the steps that invoke a linked tool or flow.
func onCall(kind callKind, f func(*ruleContext, call)) check {
	return on(func(p *ruleContext, s spec.Step) {
		if c, ok := p.callOf(s); ok && c.kind == kind {
			f(p, c)
		}
	})
}

// callOf returns the invocation of a step with bindings. It returns false if there is
// none, the target is not linked, or its arguments are not declared in the document.
func (p *checker) callOf(s spec.Step) (call, bool) {
	in, out := spec.BindingsOf(s)
	if in == nil || out == nil {
		return call{}, false
	}
	c := call{step: s, in: *in, out: *out}
	plan := p.stepPlan(s)
	if tools := plan.Tools(); len(tools) > 0 {
		t := tools[0]
		outputs, declared := t.Results()
		c.kind, c.id, c.inputs, c.outputs = toolCall, t.EntityID(), t.Arguments(), outputs
		c.inKnown, c.outKnown = knownTool(t)
		return c, declared
	}
	for _, called := range plan.Calls() {
		if f := called.Flow.To; f != nil {
			c.kind, c.id, c.inputs, c.outputs = flowCall, f.ID, linked(f.Inputs), linked(f.Outputs)
			c.inKnown, c.outKnown = knownFlow(f)
			return c, true
		}
	}
	return call{}, false
}

// linked returns the variables of the references that could be linked.
func linked(refs []spec.Ref[*spec.Variable]) []*spec.Variable {
	var vars []*spec.Variable
	for i := range refs {
		if refs[i].To != nil {
			vars = append(vars, refs[i].To)
		}
	}
	return vars
}

func invocationRules() []rule {
	return []rule{
		{code: "QT390", check: onCall(toolCall, inputKeys)},
		{code: "QT391", check: onCall(toolCall, outputKeys)},
		{code: "QT392", check: onCall(flowCall, inputKeys)},
		{code: "QT393", check: onCall(flowCall, outputKeys)},
		unboundInput(), bindingType(), noBindings(),
	}
}

func inputKeys(p *ruleContext, c call) {
	if c.inKnown {
		p.checkKeys(c, "input", c.in, c.inputs)
	}
}

func outputKeys(p *ruleContext, c call) {
	if c.outKnown {
		p.checkKeys(c, "output", c.out, c.outputs)
	}
}

// checkKeys reports the bindings whose name is not the id of one of vars.
func (p *ruleContext) checkKeys(c call, side string, bindings spec.Bindings, vars []*spec.Variable) {
	ids := make([]string, len(vars))
	for i, v := range vars {
		ids[i] = v.ID
	}
	for _, b := range bindings {
		if spec.VariableByID(vars, b.Name) != nil {
			continue
		}
		diagnostic := p.reportAt(keyPlace(c.step, side+"_bindings", b.Name), "the %s %q has no %s %q", c.kind, c.id, side, b.Name)
		diagnostic = diagnostic.WithNearest(b.Name, ids)
		if bound(bindings, diagnostic.Suggestion) { // one input cannot be bound twice
			diagnostic = diagnostic.WithoutFix()
		}
		switch {
		case diagnostic.Suggestion != "":
		case len(ids) == 0:
			diagnostic = diagnostic.WithHint("it has no %ss", side)
		default:
			diagnostic = diagnostic.WithHint("its %ss are %s", side, joinNames(ids))
		}
		p.list.Add(diagnostic)
	}
}

// keyPlace returns the position of a key of a map.
func keyPlace(n spec.Node, field, key string) source.Span {
	if at, ok := n.Position().Field(field).Lookup(key); ok {
		return at.Key
	}
	return placeOf(n, field, "id")
}

// bound reports whether there is a binding with the name.
func bound(bindings spec.Bindings, name string) bool {
	for _, b := range bindings {
		if b.Name == name {
			return true
		}
	}
	return false
}

func unboundInput() rule {
	return rule{code: "QT902", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		report := func(p *ruleContext, c call) {
			// An unknown key is probably the missing one, misspelled (QT390, QT392).
			for _, b := range c.in {
				if spec.VariableByID(c.inputs, b.Name) == nil {
					return
				}
			}
			if len(missingBindings(c)) > 0 { // reported as an error
				return
			}
			for _, v := range c.inputs {
				if v != nil && !v.IsOptional() && v.ID != "" && !bound(c.in, v.ID) {
					p.list.Add(p.reportAt(bindingsPlace(c.step, "input_bindings"), "the required input %q of %s %q is not bound", v.ID, c.kind, c.id).
						WithRelated(idPlace(v), "declared here"))
				}
			}
		}
		onCall(toolCall, report).run(p, s)
		onCall(flowCall, report).run(p, s)
	})}
}

// missingBindings returns the required inputs of the target of a step without input_bindings.
func missingBindings(c call) []string {
	if _, written := c.step.Position().Lookup("input_bindings"); written || !c.inKnown {
		return nil
	}
	var ids []string
	for _, v := range c.inputs {
		if v != nil && !v.IsOptional() && v.ID != "" {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func noBindings() rule {
	return rule{code: "QT464", check: on(func(p *ruleContext, s spec.Step) {
		report := func(p *ruleContext, c call) {
			if ids := missingBindings(c); len(ids) > 0 {
				p.report(placeOf(c.step, "tool", "flow", "id"), "the %s %q requires %s, but the step has no input_bindings", c.kind, c.id, joinNames(ids))
			}
		}
		onCall(toolCall, report).run(p, s)
		onCall(flowCall, report).run(p, s)
	})}
}

// bindingsPlace returns the position of the key of a map of bindings, without the map.
func bindingsPlace(n spec.Node, field string) source.Span {
	if at, ok := n.Position().Lookup(field); ok {
		return at.Key
	}
	return placeOf(n, "id")
}

func bindingType() rule {
	return rule{code: "QT903", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		report := func(p *ruleContext, c call) {
			for i := range c.in {
				if v := spec.VariableByID(c.inputs, c.in[i].Name); v != nil {
					p.checkMatch(&c.in[i].Var, v, c.in[i].Var.To, v)
				}
			}
			for i := range c.out {
				if v := spec.VariableByID(c.outputs, c.out[i].Name); v != nil {
					p.checkMatch(&c.out[i].Var, v, v, c.out[i].Var.To)
				}
			}
		}
		p.checkBranchTypes(s)
		onCall(toolCall, report).run(p, s)
		onCall(flowCall, report).run(p, s)
	})}
}

// checkMatch warns if a value of the variable from cannot be assigned to the variable
// to. One of them is the variable of ref, and other is the variable that it is bound to.
func (p *ruleContext) checkMatch(ref *spec.Ref[*spec.Variable], other, from, to *spec.Variable) {
	if from == nil || to == nil || p.untyped[from] || p.untyped[to] || isAssignable(from.Type, to.Type) {
		return
	}
	p.list.Add(p.reportAt(ref.Span, "%q is %s, but %q is %s", ref.ID, ref.To.Type.String(), other.ID, other.Type.String()).
		WithRelated(typePlace(other.Position().Field("type")), "declared here"))
}

// isAssignable reports whether a value of type from is accepted as a value of type to.
func isAssignable(from, to spec.Type) bool {
	if from.IsList() && to.IsList() {
		return isAssignable(*from.Elem, *to.Elem)
	}
	return from.Same(to) || from.Is(spec.Any) || to.Is(spec.Any) || from.Is("int") && to.Is("float") || from.Is("text") && to.Is("ChatMessage") ||
		from.IsMedia() && to.IsMedia()
}

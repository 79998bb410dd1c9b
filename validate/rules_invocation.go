package validate

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// call is a step that invokes a tool or a flow.
type call struct {
	step    spec.Step
	what    string // "tool" or "flow"
	id      string // of what is invoked
	inputs  []*spec.Variable
	outputs []*spec.Variable
	in, out spec.Bindings

	inKnown, outKnown bool // all inputs and all outputs of what is invoked could be read
}

// callKind is what a step with bindings invokes.
type callKind string

const (
	toolCall callKind = "tool"
	flowCall callKind = "flow"
)

// onCall makes a check of the steps that invoke a tool or flow that could be linked.
func onCall(kind callKind, f func(*ruleContext, call)) check {
	return on(func(p *ruleContext, s spec.Step) {
		if c, ok := p.callOf(s); ok && c.what == string(kind) {
			f(p, c)
		}
	})
}

// callOf is the invocation of a step with bindings; false where there is none, its
// target could not be linked, or only the target knows its arguments.
func (p *checker) callOf(s spec.Step) (call, bool) {
	in, out := spec.BindingsOf(s)
	if in == nil || out == nil {
		return call{}, false
	}
	c := call{step: s, in: *in, out: *out}
	plan := p.stepPlan(s)
	for _, t := range plan.Tools() {
		c.what, c.id = string(toolCall), t.EntityID()
		declared := false
		if c.outputs, declared = t.Results(); !declared {
			return call{}, false
		}
		c.inputs = t.Arguments()
		c.inKnown, c.outKnown = knownTool(t)
		return c, true
	}
	for _, called := range plan.Calls() {
		if f := called.Flow.To; f != nil {
			c.what, c.id, c.inputs, c.outputs = string(flowCall), f.ID, linked(f.Inputs), linked(f.Outputs)
			c.inKnown, c.outKnown = knownFlow(f)
			return c, true
		}
	}
	return call{}, false
}

// linked are the variables of those references that could be linked.
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
		unknownKey("QT390", "input", onCall(toolCall, inputKeys), toolSample("⟦town│city⟧: place", "report: summary")),
		unknownKey("QT391", "output", onCall(toolCall, outputKeys), toolSample("city: place", "⟦result│report⟧: summary")),
		unknownKey("QT392", "input", onCall(flowCall, inputKeys), flowSample("⟦who│name⟧: place", "greeting: summary")),
		unknownKey("QT393", "output", onCall(flowCall, outputKeys), flowSample("name: place", "⟦answer│greeting⟧: summary")),
		unboundInput(), bindingType(),
	}
}

// toolSample and flowSample are calls with the given bindings.
func toolSample(in, out string) sample {
	return sample{head: sampleTool, in: "place: text", out: "summary: text",
		steps: "- {type: InvokeTool, id: ask, tool: weather, input_bindings: {" + in + "}, output_bindings: {" + out + "}}"}
}

func flowSample(in, out string) sample {
	return sample{text: `
id: example
flows:
  - id: greet
    variables: [{id: name, type: text}, {id: greeting, type: text}]
    inputs: [name]
    outputs: [greeting]
    steps:
      - {type: PromptTemplate, id: write, template: "Hello {name}", inputs: [name], outputs: [greeting]}
  - id: main
    variables: [{id: place, type: text}, {id: summary, type: text}]
    inputs: [place]
    outputs: [summary]
    steps:
      - {type: InvokeFlow, id: ask, flow: greet, input_bindings: {` + in + `}, output_bindings: {` + out + `}}
`}
}

// unknownKey is one of the four rules about the keys of bindings.
func unknownKey(code, side string, c check, s sample) rule {
	what := "tool"
	if code >= "QT392" {
		what = "flow"
	}
	return rule{code: code, title: "a binding of no " + side + " of the " + what, check: c, sample: s,
		doc: "The keys of " + side + "_bindings are ids of the " + what + "'s " + side + "s, the values are variables of the calling flow."}
}

func inputKeys(p *ruleContext, c call) {
	if c.inKnown {
		p.keys(c, "input", c.in, c.inputs)
	}
}

func outputKeys(p *ruleContext, c call) {
	if c.outKnown {
		p.keys(c, "output", c.out, c.outputs)
	}
}

// keys reports the bindings whose name is none of the ids of vars.
func (p *ruleContext) keys(c call, side string, bindings spec.Bindings, vars []*spec.Variable) {
	ids := make([]string, len(vars))
	for i, v := range vars {
		ids[i] = v.ID
	}
	for _, b := range bindings {
		if variable(vars, b.Name) != nil {
			continue
		}
		finding := p.reportAt(keyPlace(c.step, side+"_bindings", b.Name), "the %s %q has no %s %q", c.what, c.id, side, b.Name)
		finding = finding.WithNearest(b.Name, ids)
		if bound(bindings, finding.Suggestion) { // one input cannot be bound twice
			finding = finding.WithoutFix()
		}
		switch {
		case finding.Suggestion != "":
		case len(ids) == 0:
			finding = finding.WithHint("it has no %ss", side)
		default:
			finding = finding.WithHint("its %ss are %s", side, joinNames(ids))
		}
		p.list.Add(finding)
	}
}

// variable is the one of vars with the id; nil where there is none.
func variable(vars []*spec.Variable, id string) *spec.Variable {
	for _, v := range vars {
		if v != nil && v.ID == id {
			return v
		}
	}
	return nil
}

// keyPlace is where a key of a map stands.
func keyPlace(n spec.Node, field, key string) source.Span {
	if at, ok := n.Place().Field(field).Lookup(key); ok {
		return at.Key
	}
	return placeOf(n, field, "id")
}

// bound tells whether there is a binding of the name.
func bound(bindings spec.Bindings, name string) bool {
	for _, b := range bindings {
		if b.Name == name {
			return true
		}
	}
	return false
}

func unboundInput() rule {
	return rule{code: "QT902", warning: true, title: "a required input without a binding",
		doc:    "The tool or flow needs the input, but the step does not bind it, so every row would fail or run without it.",
		sample: toolSample("⟦│city: place⟧", "report: summary"),
		check: on(func(p *ruleContext, s spec.Step) {
			report := func(p *ruleContext, c call) {
				// A key that is no input is probably the missing one, misspelt (QT390, QT392).
				for _, b := range c.in {
					if variable(c.inputs, b.Name) == nil {
						return
					}
				}
				for _, v := range c.inputs {
					if v != nil && !v.IsOptional() && v.ID != "" && !bound(c.in, v.ID) {
						p.list.Add(p.reportAt(bindingsPlace(c.step, "input_bindings"), "the required input %q of %s %q is not bound", v.ID, c.what, c.id).
							WithRelated(idPlace(v), "declared here"))
					}
				}
			}
			onCall(toolCall, report).run(p, s)
			onCall(flowCall, report).run(p, s)
		})}
}

// bindingsPlace is the key of a map of bindings, so that the word is marked and not the whole map.
func bindingsPlace(n spec.Node, field string) source.Span {
	if at, ok := n.Place().Lookup(field); ok {
		return at.Key
	}
	return placeOf(n, "id")
}

func bindingType() rule {
	return rule{code: "QT903", warning: true, title: "a bound variable is of another type",
		doc: "The variable and what it is bound to should have one type. An int fits a float, and a text fits a ChatMessage.",
		sample: sample{head: sampleTool, in: "place: ⟦int│text⟧", out: "summary: text",
			steps: "- {type: InvokeTool, id: ask, tool: weather, input_bindings: {city: place}, output_bindings: {report: summary}}"},
		check: on(func(p *ruleContext, s spec.Step) {
			report := func(p *ruleContext, c call) {
				for i := range c.in {
					if v := variable(c.inputs, c.in[i].Name); v != nil {
						p.meets(&c.in[i].Var, v, c.in[i].Var.To, v)
					}
				}
				for i := range c.out {
					if v := variable(c.outputs, c.out[i].Name); v != nil {
						p.meets(&c.out[i].Var, v, v, c.out[i].Var.To)
					}
				}
			}
			p.meetBranches(s)
			onCall(toolCall, report).run(p, s)
			onCall(flowCall, report).run(p, s)
		})}
}

// meets warns where a value of one variable does not fit another; ours is the
// variable that ref names, theirs what it is bound to.
func (p *ruleContext) meets(ref *spec.Ref[*spec.Variable], theirs, from, to *spec.Variable) {
	if from == nil || to == nil || p.untyped[from] || p.untyped[to] || fits(from.Type, to.Type) {
		return
	}
	p.list.Add(p.reportAt(ref.Span, "%q is %s, but %q is %s", ref.ID, ref.To.Type.String(), theirs.ID, theirs.Type.String()).
		WithRelated(typePlace(theirs.Place().Field("type")), "declared here"))
}

// fits tells whether a value of type from can be given where to is declared.
func fits(from, to spec.Type) bool {
	if from.IsList() && to.IsList() {
		return fits(*from.Elem, *to.Elem)
	}
	return from.Same(to) || from.Is("int") && to.Is("float") || from.Is("text") && to.Is("ChatMessage") ||
		from.IsMedia() && to.IsMedia()
}

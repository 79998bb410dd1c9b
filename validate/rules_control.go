package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// controlRules returns the rules of steps that run flows: Switch, Loop and Parallel.
// The variables of a step and its flows are matched by id.
func controlRules() []rule {
	return []rule{missingFlowInput(), unknownFlowOutput(), duplicateFlowOutput(), flowToolCycle(), emptyStep()}
}

// branches returns the flows that a step runs with variables matched by id.
func (p *checker) branches(s spec.Step) []*spec.Ref[*spec.Flow] {
	var all []*spec.Ref[*spec.Flow]
	for _, call := range p.stepPlan(s).Calls() {
		if call.MatchesByID() {
			all = append(all, call.Flow)
		}
	}
	return all
}

// portByID returns the port with an id, or nil. The flows that a step runs have
// separate variables, so ports are compared by id.
func portByID(ports []port, id string) port {
	if i := slices.IndexFunc(ports, func(one port) bool { return one.ID == id }); i >= 0 {
		return ports[i]
	}
	return nil
}

const parallelHead = `
id: example
flows:
  - id: shorten
    variables: [{id: story, type: text}, {id: headline, type: text}]
    inputs: [story]
    outputs: [headline]
    steps: [{type: PromptTemplate, id: cut, template: "Short: {story}", inputs: [story], outputs: [headline]}]
  - id: translate
    variables: [{id: story, type: text}, {id: version, type: text}, {id: headline, type: text}]
    inputs: [story]
    outputs: ⟦[version, headline]│[version]⟧
    steps:
      - {type: PromptTemplate, id: turn, template: "In French: {story}", inputs: [story], outputs: [version]}
      - {type: PromptTemplate, id: head, template: "En bref: {story}", inputs: [story], outputs: [headline]}
`

// parallelSample returns a Parallel of two flows.
func parallelSample(head, inputs, outputs string) sample {
	return sample{text: head + `  - id: main
    variables: [{id: story, type: text}, {id: headline, type: text}, {id: version, type: text}, {id: mood, type: text}]
    inputs: [story, mood]
    outputs: [headline, version]
    steps:
      - {type: Parallel, id: both, flows: [shorten, translate], inputs: [` + inputs + `], outputs: [` + outputs + `]}
`}
}

// rightSide returns the right side of a text with marks.
func rightSide(text string) string { return choose(text, true) }

func missingFlowInput() rule {
	return rule{code: "QT427", title: "flow without a required input",
		doc:    "Switch, Loop and Parallel pass their inputs to the inputs with the same ids of the flows that they run, so each required input of a flow must be an input of the step.",
		sample: parallelSample(rightSide(parallelHead), "⟦mood│story⟧", "headline, version"),
		check: on(func(p *ruleContext, s spec.Step) {
			given := portsOf(s.Common().Inputs)
			for _, ref := range p.branches(s) {
				for _, in := range inputsOfFlow(ref.To) {
					if have := portByID(given, in.ID); have != nil || in.To == nil || in.To.IsOptional() {
						continue
					}
					diagnostic := p.reportAt(ref.Span, "the flow %q requires the input %q, which is not an input of step %q", ref.ID, in.ID, s.EntityID())
					p.list.Add(diagnostic.WithHint("add %s to the step's inputs", in.ID).WithRelated(in.Span, "an input of the flow"))
				}
			}
		})}
}

func inputsOfFlow(f *spec.Flow) []port {
	if f == nil {
		return nil
	}
	return portsOf(f.Inputs)
}

func outputsOfFlow(f *spec.Flow) []port {
	if f == nil {
		return nil
	}
	return portsOf(f.Outputs)
}

func unknownFlowOutput() rule {
	return rule{code: "QT428", title: "output that none of the flows has",
		doc:    "Switch, Loop and Parallel set their outputs from the outputs with the same ids of the flows that they run.",
		sample: parallelSample(rightSide(parallelHead), "story", "headline, version⟦, mood│⟧"),
		check: on(func(p *ruleContext, s spec.Step) {
			flows := p.branches(s)
			var ids []string
			for _, ref := range flows {
				if _, known := knownFlow(ref.To); ref.ID != "" && !known {
					return // its outputs are unknown
				}
				for _, out := range outputsOfFlow(ref.To) {
					ids = append(ids, out.ID)
				}
			}
			if len(ids) == 0 && len(flows) == 0 {
				return
			}
			for _, out := range portsOf(s.Common().Outputs) {
				if out.To == nil || slices.Contains(ids, out.ID) {
					continue
				}
				diagnostic := p.reportAt(out.Span, "no flow of step %q has the output %q", s.EntityID(), out.ID)
				if near := diag.Nearest(out.ID, ids); near != "" {
					diagnostic = diagnostic.WithSuggestion(near)
				}
				p.list.Add(diagnostic)
			}
		})}
}

func duplicateFlowOutput() rule {
	return rule{code: "QT429", title: "parallel flows with the same output",
		doc:    "The outputs of parallel flows are merged, so two flows cannot write the same variable. Rename one of the outputs.",
		sample: parallelSample(parallelHead, "story", "headline, version"),
		check: on(func(p *ruleContext, s *spec.Parallel) {
			first := map[string]*spec.Ref[*spec.Flow]{}
			for i := range s.Flows {
				ref := &s.Flows[i]
				for _, out := range outputsOfFlow(ref.To) {
					if one := first[out.ID]; one != nil {
						p.list.Add(p.reportAt(ref.Span, "the flows %q and %q of step %q both write %q", one.ID, ref.ID, s.ID, out.ID).
							WithRelated(out.Span, "the output of flow "+ref.ID))
						continue
					}
					first[out.ID] = ref
				}
			}
		})}
}

// checkBranchTypes warns if a variable of a step has another type than the variable
// with the same id of a flow that the step runs (QT903).
func (p *ruleContext) checkBranchTypes(s spec.Step) {
	for _, ref := range p.branches(s) {
		if ref.To == nil {
			continue
		}
		for i := range s.Common().Inputs {
			in := &s.Common().Inputs[i]
			if other := portByID(inputsOfFlow(ref.To), in.ID); other != nil && other.To != nil {
				p.checkMatch(in, other.To, in.To, other.To)
			}
		}
		for i := range s.Common().Outputs {
			out := &s.Common().Outputs[i]
			if other := portByID(outputsOfFlow(ref.To), out.ID); other != nil && other.To != nil {
				p.checkMatch(out, other.To, other.To, out.To)
			}
		}
	}
}

func flowToolCycle() rule {
	return rule{code: "QT430", title: "flow that can call itself as a tool",
		doc: "A FlowTool runs a flow. If an agent in that flow, or in a flow that it runs, has the tool, the model could call the flow recursively without end. The same holds for the handoffs of an Agent: a flow hands the conversation back by the tool hand_back, not by another handoff.",
		sample: sample{text: `
id: example
models: [{type: Model, id: writer, provider: openai}]
tools: [{type: FlowTool, id: repeat, description: Answers the question again, flow: ⟦main│look_up⟧}]
flows:
  - id: look_up
    variables: [{id: question, type: text}]
    inputs: [question]
    outputs: [question]
    steps: [{type: Echo, id: pass, inputs: [question], outputs: [question]}]
  - id: main
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: writer, tools: [repeat], inputs: [question], outputs: [answer]}]
`},
		check: on(func(p *ruleContext, d *spec.Document) { searchFlows(p, true) })}
}

func emptyStep() rule {
	return rule{code: "QT440", title: "empty step",
		doc: "A Switch has at least one case, a Parallel at least one flow, and a Transform sets at least one variable.",
		sample: sample{in: "price: float", out: "total: float",
			steps: "- {type: Transform, id: sum, set: {⟦│total: price * 2⟧}, ⟦outputs: [total]│inputs: [price]⟧}"},
		check: on(func(p *ruleContext, s spec.Step) {
			for _, key := range spec.EmptyKeys(s) {
				// A value that could not be read has parts. The loader reports missing keys.
				if written, ok := s.Position().Lookup(key); ok && len(written.Parts) == 0 {
					p.report(written.Key, "%q of step %q (%s) is empty", key, s.EntityID(), spec.TypeName(s))
				}
			}
		})}
}

// expressionRules returns the rules of expressions. They are checked while linking.
func expressionRules() []rule {
	return []rule{invalidExpression(), conditionNotBoolean(), unknownVariable(), expressionOfOtherType()}
}

// switchSample returns a document with a Switch.
func switchSample(when string) sample {
	return sample{text: `
id: example
flows:
  - id: refund
    variables: [{id: order, type: int}, {id: reply, type: text}]
    inputs: [order]
    outputs: [reply]
    steps:
      - {type: PromptTemplate, id: write, template: "Order {order} is refunded.", inputs: [order], outputs: [reply]}
  - id: main
    variables: [{id: label, type: text}, {id: order, type: int}, {id: reply, type: text}]
    inputs: [label, order]
    outputs: [reply]
    steps:
      - type: Switch
        id: choose
        inputs: [order]
        cases:
          - {when: '` + when + `', flow: refund}
        outputs: [reply]
`}
}

func invalidExpression() rule {
	return rule{code: "QT423", title: "invalid expression",
		doc:    "Conditions and the values of a Transform are expressions in the language of expr-lang.org: variables, numbers, \"texts\", == and <, and, or, not, in, + and *, functions such as len(…) and lower(…). They are checked against the types of the variables.",
		sample: switchSample(`label ⟦=│==⟧ "refund"`)}
}

func conditionNotBoolean() rule {
	return rule{code: "QT424", title: "condition that is not true or false",
		doc:    "The expressions of when and until are conditions: compare a value, for example with == or >.",
		sample: switchSample(`order⟦│ > 1000⟧`)}
}

func unknownVariable() rule {
	return rule{code: "QT425", title: "unknown variable in an expression",
		doc:    "The names in an expression are variables of its flow, functions, and the keywords and, or, not, in, let, true, false and nil. Texts are quoted.",
		sample: switchSample(`⟦lable│label⟧ == "refund"`)}
}

func expressionOfOtherType() rule {
	return rule{code: "QT426", title: "expression of the wrong type",
		doc: "Each value that a Transform sets has the type of its variable. An int is accepted as a float. Convert with string(…), int(…) and float(…).",
		sample: sample{in: "price: float, pieces: int", out: "total: ⟦text│float⟧",
			steps: "- {type: Transform, id: sum, set: {total: price * pieces}}"}}
}

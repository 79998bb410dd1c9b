package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// flowLint returns the warnings about flows.
func flowLint() []rule {
	return []rule{outputNotProduced(), unknownSessionInput(), extraCompletionInput(), overwrittenValue()}
}

func outputNotProduced() rule {
	return rule{code: "QT901", warning: true, title: "flow output that is never written",
		doc: "The output is neither an input of the flow nor an output of one of its steps, so it is never set.",
		sample: sample{in: "name: text", vars: "greeting: text", out: "⟦other│greeting⟧: text",
			steps: `- {type: PromptTemplate, id: greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			plan := p.planOf(f)
			if !plan.complete || len(plan.steps) == 0 {
				return
			}
			given := map[*spec.Variable]bool{}
			for _, in := range f.Inputs {
				given[in.To] = true
			}
			for _, out := range portsOf(f.Outputs) {
				if out.To != nil && !given[out.To] && len(plan.written[out.To]) == 0 {
					p.report(out.Span, "no step writes the output %q of flow %q", out.ID, f.ID)
				}
			}
		})}
}

func unknownSessionInput() rule {
	return rule{code: "QT906", warning: true, title: "session input that is not an input",
		doc:    "session_inputs lists the inputs of the flow that keep their first value for the whole conversation.",
		sample: chatSample("question: ChatMessage⟦│, plan: text⟧", "answer: ChatMessage, plan: text", "interface: {type: Conversational, session_inputs: [plan]}"),
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Interface == nil || !f.Position().Complete("inputs") {
				return
			}
			for _, s := range portsOf(f.Interface.SessionInputs) {
				if s.To != nil && !slices.ContainsFunc(f.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == s.To }) {
					p.report(s.Span, "the session input %q is not an input of flow %q", s.ID, f.ID)
				}
			}
		})}
}

func extraCompletionInput() rule {
	return rule{code: "QT907", warning: true, title: "completion flow with another required input",
		doc:    "A completion request sends one text. Another input can only be set by a run or by another flow: make it optional, or remove the interface.",
		sample: chatSample("question: text, plan: ⟦int│int?⟧", "answer: text", "interface: {type: Complete}"),
		check: onInterface("Complete", "text", "inputs", func(p *ruleContext, at interfaceFlow) {
			for _, in := range at.inputs {
				if t, _ := p.typed(in); len(at.interfaceInputs) == 1 && !t.Is("text") && !in.To.IsOptional() {
					p.report(in.Span, "a completion request for flow %q cannot set the required input %q", at.flow.ID, in.ID)
				}
			}
		})}
}

func overwrittenValue() rule {
	return rule{code: "QT917", warning: true, title: "value overwritten before it is read",
		doc: "Two steps write the same variable and no step reads it in between, so the first result is lost.",
		sample: sample{in: "name: text", vars: "⟦│formal: text⟧", out: "greeting: text⟦│, formal: text⟧",
			steps: `- {type: PromptTemplate, id: greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}
- {type: PromptTemplate, id: bow, template: "Dear {name}", inputs: [name], outputs: [⟦greeting│formal⟧]}`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if !p.planOf(f).read {
				return // a step that could not be read may read the value
			}
			plan := p.planOf(f)
			for i, s := range plan.steps {
				for _, out := range s.Writes {
					if later := plan.overwriter(i, out.To); out.To != nil && later != nil {
						p.list.Add(p.reportAt(out.Span, "step %q writes %q, but step %q overwrites it before it is read", s.Step.EntityID(), out.ID, later.EntityID()).
							WithRelated(idPlace(later), "the step that overwrites it"))
					}
				}
			}
		})}
}

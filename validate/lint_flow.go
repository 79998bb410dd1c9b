package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// flowLint are doubts about a flow as a whole (semantics.md 6).
func flowLint() []rule {
	return []rule{outputNotProduced(), foreignSessionInput(), unfilledInput(), lostValue()}
}

func outputNotProduced() rule {
	return rule{code: "QT901", warning: true, title: "a flow output that nothing writes",
		doc: "The output is neither an input of the flow nor an output of one of its steps, so it is never set.",
		sample: sample{in: "name: text", vars: "greeting: text", out: "⟦other│greeting⟧: text",
			steps: `- {type: PromptTemplate, id: greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			plan := p.planOf(f)
			if !plan.complete || len(plan.steps) == 0 {
				return
			}
			for _, out := range portsOf(f.Outputs) {
				given := slices.ContainsFunc(f.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == out.To })
				if out.To != nil && !given && !slices.ContainsFunc(plan.steps, func(s *spec.StepPlan) bool { return writes(s, out.To) }) {
					p.report(out.Span, "the output %q of flow %q is written by no step", out.ID, f.ID)
				}
			}
		})}
}

func foreignSessionInput() rule {
	return rule{code: "QT906", warning: true, title: "a session input that is not an input",
		doc:    "session_inputs are those inputs of the flow that keep their first value for the whole conversation.",
		sample: chatSample("said: ChatMessage⟦│, plan: text⟧", "answer: ChatMessage, plan: text", "interface: {type: Conversational, session_inputs: [plan]}"),
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Interface == nil || !f.Place().Complete("inputs") {
				return
			}
			for _, s := range portsOf(f.Interface.SessionInputs) {
				if s.To != nil && !slices.ContainsFunc(f.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == s.To }) {
					p.report(s.Span, "the session input %q is not an input of flow %q", s.ID, f.ID)
				}
			}
		})}
}

func unfilledInput() rule {
	return rule{code: "QT907", warning: true, title: "a completion flow that needs more than its text",
		doc:    "Who asks for a completion gives one text and nothing else, so an input beside it can only be filled by a run or by another flow. Make it optional, or take the interface away.",
		sample: chatSample("said: text, plan: ⟦int│int?⟧", "answer: text", "interface: {type: Complete}"),
		check: onFace("Complete", "text", "inputs", func(p *ruleContext, at interfaceFlow) {
			for _, in := range at.inputs {
				if t, _ := p.typed(in); len(at.spoken) == 1 && !t.Is("text") && !in.To.IsOptional() {
					p.report(in.Span, "who asks the flow %q for a completion gives its text alone, not %q", at.flow.ID, in.ID)
				}
			}
		})}
}

func lostValue() rule {
	return rule{code: "QT917", warning: true, title: "a value that is overwritten before it is read",
		doc: "Two steps write the same variable, and nothing reads it between them, so the first one works in vain.",
		sample: sample{in: "name: text", vars: "⟦│formal: text⟧", out: "greeting: text⟦│, formal: text⟧",
			steps: `- {type: PromptTemplate, id: greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}
- {type: PromptTemplate, id: bow, template: "Dear {name}", inputs: [name], outputs: [⟦greeting│formal⟧]}`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if !p.planOf(f).read {
				return // a step that could not be read may read the value
			}
			stages := p.planOf(f).steps
			for i, s := range stages {
				for _, out := range s.Writes {
					if later := overwriter(stages[i+1:], out.To); out.To != nil && later != nil {
						p.list.Add(p.reportAt(out.Span, "step %q writes %q in vain: step %q overwrites it before it is read", s.Step.EntityID(), out.ID, later.EntityID()).
							WithRelated(idPlace(later), "the step that overwrites it"))
					}
				}
			}
		})}
}

// overwriter is the first of some steps to write v, unless one reads it first.
func overwriter(stages []*spec.StepPlan, v *spec.Variable) spec.Step {
	for _, s := range stages {
		switch {
		case reads(s, v):
			return nil
		case writes(s, v):
			if s.Maybe {
				return nil
			}
			return s.Step
		}
	}
	return nil
}

package validate

import (
	"github.com/qtype-dev/qtype/spec"
)

func flowRules() []rule { return []rule{flowWithoutSteps(), inputNotAvailable()} }

func flowWithoutSteps() rule {
	return rule{code: "QT310", title: "flow without steps",
		doc: "A flow is a sequence of steps and has at least one.",
		sample: sample{in: "name: text", out: "name: text",
			flow: "⟦steps: []│steps: [{type: Echo, id: pass, inputs: [name], outputs: [name]}]⟧"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if len(f.Steps) > 0 || f.ID == "" || !f.Position().Complete("steps") {
				return // without an id it is probably not meant as a flow
			}
			p.report(placeOf(f, "steps", "id"), "the flow %q has no steps", f.ID)
		})}
}

func inputNotAvailable() rule {
	return rule{code: "QT311", title: "variable read before it is written",
		doc: "A step's inputs are inputs of the flow or outputs of an earlier step. Variables in bindings and paths are inputs too.",
		sample: sample{in: "name: text", vars: "greeting: text", out: "loud: text",
			steps: `- {type: PromptTemplate, id: ⟦shout, template: "{greeting}!", inputs: [greeting], outputs: [loud]}│greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}⟧
- {type: PromptTemplate, id: ⟦greet, template: "Hello {name}", inputs: [name], outputs: [greeting]}│shout, template: "{greeting}!", inputs: [greeting], outputs: [loud]}⟧`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			plan := p.planOf(f)
			if !plan.complete {
				return
			}
			available := map[*spec.Variable]bool{}
			for i := range f.Inputs {
				available[f.Inputs[i].To] = true
			}
			for i, s := range plan.steps {
				for _, in := range s.Reads {
					if in.To != nil && !available[in.To] {
						p.reportUnavailable(f, in, i)
					}
				}
				for _, out := range s.Writes {
					available[out.To] = true
				}
			}
		})}
}

// reportUnavailable reports a variable that step i reads and no earlier step writes.
func (p *ruleContext) reportUnavailable(f *spec.Flow, in port, i int) {
	plan := p.planOf(f)
	reader := plan.steps[i]
	diagnostic := p.reportAt(in.Span, "the step %q reads %q, which no earlier step writes", reader.Step.EntityID(), in.ID)
	if !reader.Item.Ref.Span.IsZero() {
		diagnostic.Span = reader.Item.Ref.Span
		diagnostic = diagnostic.WithRelated(in.Span, "the step reads it here")
	}
	local := p.locals[f][in.ID]
	later := plan.after(plan.written[in.To], i)
	switch {
	case later < len(plan.steps):
		writer := plan.steps[later].Step
		diagnostic = diagnostic.WithHint("step %q writes it later", writer.EntityID()).
			WithRelated(idPlace(writer), "the step that writes it")
	case local != nil && local != in.To:
		diagnostic = diagnostic.WithHint("the step is written in another flow and reads that flow's %q", in.ID).
			WithRelated(idPlace(in.To), "the variable that it reads")
	default:
		diagnostic = diagnostic.WithHint("make it an input of the flow %q or an output of an earlier step", f.ID)
	}
	p.list.Add(diagnostic)
}

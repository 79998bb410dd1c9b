package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

func flowRules() []rule { return []rule{flowWithoutSteps(), inputNotAvailable()} }

func flowWithoutSteps() rule {
	return rule{code: "QT310", title: "a flow without steps",
		doc: "A flow is a chain of steps; it has at least one.",
		sample: sample{in: "name: text", out: "name: text",
			flow: "⟦steps: []│steps: [{type: Echo, id: pass, inputs: [name], outputs: [name]}]⟧"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if len(f.Steps) > 0 || f.ID == "" || !f.Place().Complete("steps") {
				return // what has no id is hardly meant to be a flow
			}
			p.report(placeOf(f, "steps", "id"), "the flow %q has no steps", f.ID)
		})}
}

func inputNotAvailable() rule {
	return rule{code: "QT311", title: "a step reads what nothing has written yet",
		doc: "A step's inputs are inputs of the flow or outputs of an earlier step. Variables of bindings and paths count as inputs too.",
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

// reportUnavailable says where the value that step i lacks might come from.
func (p *ruleContext) reportUnavailable(f *spec.Flow, in port, i int) {
	stages := p.planOf(f).steps
	reader := stages[i]
	finding := p.reportAt(in.Span, "the step %q reads %q, which nothing has written yet", reader.Step.EntityID(), in.ID)
	if !reader.Item.Ref.Span.IsZero() {
		finding.Span = reader.Item.Ref.Span
		finding = finding.WithRelated(in.Span, "the step reads it here")
	}
	own := p.locals[f][in.ID]
	later := slices.IndexFunc(stages[i+1:], func(s *spec.StepPlan) bool { return writes(s, in.To) })
	switch {
	case later >= 0:
		writer := stages[i+1+later].Step
		finding = finding.WithHint("step %q writes it later", writer.EntityID()).
			WithRelated(idPlace(writer), "the step that writes it")
	case own != nil && own != in.To:
		finding = finding.WithHint("the step is written in another flow and reads that flow's %q", in.ID).
			WithRelated(idPlace(in.To), "the variable that it reads")
	default:
		finding = finding.WithHint("make it an input of the flow %q or an output of an earlier step", f.ID)
	}
	p.list.Add(finding)
}

// writes and reads tell what a stage does with a variable.
func writes(s *spec.StepPlan, v *spec.Variable) bool {
	return slices.ContainsFunc(s.Writes, func(out port) bool { return out.To == v })
}

func reads(s *spec.StepPlan, v *spec.Variable) bool {
	return s.ReadsAll || slices.ContainsFunc(s.Reads, func(in port) bool { return in.To == v })
}

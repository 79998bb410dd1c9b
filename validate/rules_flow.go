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
		check: on(func(p *pass, f *spec.Flow) {
			// Steps that could not be read are steps all the same.
			if written, ok := f.Place().Lookup("steps"); len(f.Steps) > 0 || ok && len(written.Parts) > 0 {
				return
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
		check: on(func(p *pass, f *spec.Flow) {
			plan := p.planOf(f)
			if !plan.whole {
				return
			}
			available := map[*spec.Variable]bool{}
			for i := range f.Inputs {
				available[f.Inputs[i].To] = true
			}
			for i, s := range plan.stages {
				for _, in := range s.reads {
					if in.v != nil && !available[in.v] {
						p.reportUnavailable(f, in, i)
					}
				}
				for _, out := range s.writes {
					available[out.v] = true
				}
			}
		})}
}

// reportUnavailable says where the value that step i lacks might come from.
func (p *pass) reportUnavailable(f *spec.Flow, in port, i int) {
	stages := p.planOf(f).stages
	finding := p.at(in.span, "the step %q reads %q, which nothing has written yet", stages[i].step.EntityID(), in.id)
	for _, later := range stages[i:] {
		if writes(later, in.v) && later.step != stages[i].step {
			p.list.Add(finding.WithHint("step %q writes it later", later.step.EntityID()).
				WithRelated(idPlace(later.step), "the step that writes it"))
			return
		}
	}
	if own := p.locals[f][in.id]; own != nil && own != in.v {
		p.list.Add(finding.WithHint("the step was written in another flow and reads that flow's %q", in.id).
			WithRelated(idPlace(in.v), "the variable that it reads"))
		return
	}
	p.list.Add(finding.WithHint("make it an input of the flow %q or an output of an earlier step", f.ID))
}

func writes(s stage, v *spec.Variable) bool {
	return slices.ContainsFunc(s.writes, func(out port) bool { return out.v == v })
}

func reads(s stage, v *spec.Variable) bool {
	return s.readAll || slices.ContainsFunc(s.reads, func(in port) bool { return in.v == v })
}

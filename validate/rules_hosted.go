package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// hostedRules are about tools that providers run, and about what binds the arguments of tools.
func hostedRules() []rule {
	return []rule{hostedUnavailable(), hostedCalled(), grammarInput(), strictInputs()}
}

func hostedUnavailable() rule {
	return rule{code: "QT496", check: on(func(p *ruleContext, s *spec.Agent) {
		if s.Model.To == nil {
			return
		}
		models := modelAndFallbacks(s.Model.To.Base())
		for _, ref := range s.Tools {
			hosted, ok := ref.To.(*spec.HostedTool)
			if !ok {
				continue
			}
			i := slices.IndexFunc(s.Approve, func(a *spec.Approval) bool { return a.Tool.To == ref.To })
			for _, m := range models {
				if asks, known := hosted.AsksApproval(m); known && asks != (i >= 0) {
					p.reportApproval(s, ref, i, m)
					break
				}
			}
			for _, m := range models {
				if problem := hosted.HostedConflict(m); problem != "" {
					p.report(ref.Span, "agent %q: the model %q cannot have the tool %q: %s", s.ID, m.ID, hosted.ID, problem)
					break
				}
			}
		}
	})}
}

// reportApproval reports a hosted tool that is in approve although the provider does not ask for approvals,
// or is not in it although the provider does. i is its index in approve, negative for none.
func (p *ruleContext) reportApproval(s *spec.Agent, ref spec.Ref[spec.Tool], i int, m *spec.Model) {
	if i >= 0 {
		p.report(s.Approve[i].Tool.Span, "agent %q: the provider of the model %q runs the tool %q without asking, so that a person cannot approve its calls", s.ID, m.ID, ref.ID)
		return
	}
	p.list.Add(p.reportAt(ref.Span, "agent %q: the provider of the model %q asks for an approval of each call of the tool %q", s.ID, m.ID, ref.ID).
		WithHint("add %s to approve, or write require_approval: never in the settings of the tool", ref.ID))
}

func hostedCalled() rule {
	return rule{code: "QT494", check: on(func(p *ruleContext, s spec.Step) {
		plan := spec.PlanStep(s)
		if len(spec.Refs[spec.ModelEntity](plan.Uses, spec.RoleChatModel)) > 0 {
			return // also if no model has the id, which QT202 reports
		}
		for _, tool := range plan.Tools() {
			if hosted, ok := tool.(*spec.HostedTool); ok {
				p.report(placeOf(s, "tool", "id"), "step %q has no model, whose provider could run the tool %q", s.EntityID(), hosted.ID)
			}
		}
	})}
}

func grammarInput() rule {
	return rule{code: "QT495", check: on(func(p *ruleContext, t spec.Tool) {
		common := t.Common()
		if common.Grammar == nil || !t.Position().Complete("inputs", "grammar") {
			return
		}
		if inputs := common.Inputs; len(inputs) != 1 || !inputs[0].Type.Is("text") {
			p.report(placeOf(t, "grammar", "id"), "the tool %q has a grammar, but not exactly one input of type text", t.EntityID())
		}
	})}
}

func strictInputs() rule {
	return rule{code: "QT497", check: on(func(p *ruleContext, t spec.Tool) {
		if !t.Common().Strict {
			return
		}
		for _, v := range t.Common().Inputs {
			if typ := unboundType(v.Type, nil); typ != "" {
				p.report(typePlace(v.Position().Field("type")), "the input %q of the strict tool %q: no schema describes the type %s", v.ID, t.EntityID(), typ)
			}
		}
	})}
}

// unboundType returns the type in t that a schema cannot describe, empty for none. seen has the custom
// types around t.
func unboundType(t spec.Type, seen []*spec.CustomType) string {
	switch {
	case t.Elem != nil:
		return unboundType(*t.Elem, seen)
	case t.Custom == nil && t.Name != "MessageRole" && (t.IsRecord() || t.IsMedia() || t.Is(spec.Any)):
		return t.Name
	case t.Custom == nil || slices.Contains(seen, t.Custom):
		return ""
	}
	for _, f := range t.Custom.Properties {
		if name := unboundType(f.Type, append(seen, t.Custom)); name != "" {
			return name
		}
	}
	return ""
}

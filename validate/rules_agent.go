package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// agentRules returns the rules of agents that run flows: as tools and by handoffs.
func agentRules() []rule { return []rule{impossibleHandoff(), memoryOfCaller()} }

func impossibleHandoff() rule {
	return rule{code: "QT492", check: on(func(p *ruleContext, s *spec.Agent) {
		if out := firstOutput(s); len(s.Handoffs) > 0 && out != nil && out.Type.Custom != nil {
			p.report(placeOf(s, "outputs", "id"), "agent %q has handoffs, so its output is a text or a ChatMessage, not %s", s.ID, out.Type)
		}
		for i := range s.Handoffs {
			p.checkHandoff(s, i)
		}
	})}
}

// firstOutput returns the output of a step, nil if it is not linked.
func firstOutput(s spec.Step) *spec.Variable {
	if outs := s.Common().Outputs; len(outs) > 0 {
		return outs[0].To
	}
	return nil
}

// checkHandoff reports why an agent cannot transfer to one of its flows.
func (p *ruleContext) checkHandoff(s *spec.Agent, i int) {
	ref := &s.Handoffs[i]
	f := ref.To
	if f == nil || !f.Position().Complete("inputs", "outputs", "variables", "steps") {
		return
	}
	if slices.ContainsFunc(s.Handoffs[:i], func(r spec.Ref[*spec.Flow]) bool { return r.To == f }) {
		p.list.Add(p.reportAt(ref.Span, "agent %q lists the flow %q twice", s.ID, f.ID))
		return
	}
	if problem := spec.HandoffProblem(f); problem != "" {
		p.list.Add(p.reportAt(ref.Span, "agent %q cannot transfer to the flow %q: %s", s.ID, f.ID, problem).
			WithRelated(placeOf(f, "id"), "the flow"))
	}
	p.checkReservedName(s, spec.HandoffTool(f), ref.Span)
	for step := range f.Plan().All() {
		p.checkReservedName(step.Step, spec.HandBackTool, ref.Span)
	}
}

// checkReservedName reports a tool of a step that has the name of a tool for handoffs.
func (p *ruleContext) checkReservedName(s spec.Step, name string, at source.Span) {
	for _, t := range p.stepPlan(s).Tools() {
		if modelFacingName(t) == name {
			p.list.Add(p.reportAt(at, "the tool %q of step %q has the name %q, which is reserved for handoffs", t.EntityID(), s.EntityID(), name).
				WithRelated(placeOf(t, "name", "id"), "the tool"))
		}
	}
}

func memoryOfCaller() rule {
	return rule{code: "QT493", check: on(func(p *ruleContext, s *spec.Agent) {
		if s.Memory.To == nil {
			return
		}
		search := &turnSearch{memory: s.Memory.To, seen: map[*spec.Flow]bool{}}
		plan := p.stepPlan(s)
		for _, ref := range plan.ToolRefs() {
			p.reportTurn(s, ref.Span, search.inTool(ref.To))
		}
		for _, ref := range plan.Handoffs() {
			p.reportTurn(s, ref.Span, search.inFlow(ref.To))
		}
	})}
}

// reportTurn reports a step that needs a turn of the memory of an agent that calls it.
func (p *ruleContext) reportTurn(s *spec.Agent, at source.Span, inner spec.Step) {
	if inner != nil {
		p.list.Add(p.reportAt(at, "the step %q uses the memory %q in the session of agent %q, which is in use during the call", inner.EntityID(), s.Memory.ID, s.ID).
			WithRelated(placeOf(inner, "memory", "id"), "the memory of the step"))
	}
}

// turnSearch finds steps with a conversation of a memory in the session of the caller.
type turnSearch struct {
	memory *spec.Memory
	seen   map[*spec.Flow]bool
}

// inTool returns a step that a tool runs in the session of its caller; nil for none.
func (s *turnSearch) inTool(t spec.Tool) spec.Step {
	if f, ok := t.(*spec.FlowTool); ok && f.SharesSession() {
		return s.inFlow(f.Flow.To)
	}
	return nil
}

// inFlow returns a step of a flow, or of what it runs in the same session; f may be nil.
func (s *turnSearch) inFlow(f *spec.Flow) spec.Step {
	if f == nil || s.seen[f] {
		return nil
	}
	s.seen[f] = true
	for _, step := range f.Plan().Steps {
		if step.Conversation() == s.memory {
			return step.Step
		}
		for _, ref := range slices.Concat(flowsOf(step.Calls()), step.Handoffs()) {
			if found := s.inFlow(ref.To); found != nil {
				return found
			}
		}
		for _, t := range step.Tools() {
			if found := s.inTool(t); found != nil {
				return found
			}
		}
	}
	return nil
}

// flowsOf returns the flows of calls.
func flowsOf(calls []spec.FlowCall) []*spec.Ref[*spec.Flow] {
	refs := make([]*spec.Ref[*spec.Flow], len(calls))
	for i := range calls {
		refs[i] = calls[i].Flow
	}
	return refs
}

package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// agentRules returns the rules of agents that run flows: as tools and by handoffs.
func agentRules() []rule { return []rule{impossibleHandoff(), memoryOfCaller()} }

func impossibleHandoff() rule {
	return rule{code: "QT492", title: "handoff to a flow that cannot answer",
		doc: "A flow to which an Agent transfers the conversation has one input, the question, and further ones only if they are optional; one output, the answer; and an Agent, which can hand the conversation back. Question and answer are of type text or ChatMessage. The model transfers by a tool transfer_to_ and the id of the flow, and back by hand_back; no tool may have these names.",
		sample: sample{text: `
id: example
models: [{type: Model, id: writer, provider: openai}]
flows:
  - id: billing
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: ⟦LLMInference│Agent⟧, id: bill, model: writer, inputs: [question], outputs: [answer]}]
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps: [{type: Agent, id: triage, model: writer, handoffs: [billing], inputs: [message], outputs: [reply]}]
`},
		check: on(func(p *ruleContext, s *spec.Agent) {
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
	return rule{code: "QT493", title: "memory that is in use by the calling agent",
		doc: "During a turn of an Agent its session of the memory is in use. A flow that runs as its tool or by a handoff in the same session cannot use the memory for a conversation, too: use another memory or none, or give the FlowTool its own session (session: own or call).",
		sample: sample{text: `
id: example
models: [{type: Model, id: writer, provider: openai}]
memories: [{id: talks, policy: message_window, max_messages: 40}]
tools: [{type: FlowTool, id: research, description: Researches a topic, flow: look_up⟦│, session: own⟧}]
flows:
  - id: look_up
    variables: [{id: question, type: text}, {id: report, type: text}]
    inputs: [question]
    outputs: [report]
    steps: [{type: Agent, id: search, model: writer, memory: talks, inputs: [question], outputs: [report]}]
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps: [{type: Agent, id: help, model: writer, memory: talks, tools: [research], inputs: [message], outputs: [reply]}]
`},
		check: on(func(p *ruleContext, s *spec.Agent) {
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

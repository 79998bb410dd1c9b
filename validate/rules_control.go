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

func missingFlowInput() rule {
	return rule{code: "QT427", check: on(func(p *ruleContext, s spec.Step) {
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
	return rule{code: "QT428", check: on(func(p *ruleContext, s spec.Step) {
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
	return rule{code: "QT429", check: on(func(p *ruleContext, s *spec.Parallel) {
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
	return rule{code: "QT430", check: on(func(p *ruleContext, d *spec.Document) { searchFlows(p, true) })}
}

func emptyStep() rule {
	return rule{code: "QT440", check: on(func(p *ruleContext, s spec.Step) {
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

func invalidExpression() rule {
	return rule{code: "QT423"}
}

func conditionNotBoolean() rule {
	return rule{code: "QT424"}
}

func unknownVariable() rule {
	return rule{code: "QT425"}
}

func expressionOfOtherType() rule {
	return rule{code: "QT426"}
}

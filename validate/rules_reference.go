package validate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// referenceRules returns the rules of lists of tools and fallback models.
func referenceRules() []rule {
	return []rule{approvalOfOtherTool(), fallbackCycle(), incompatibleFallback()}
}

func approvalOfOtherTool() rule {
	return rule{code: "QT431", check: on(func(p *ruleContext, s *spec.Agent) {
		for _, a := range s.Approve {
			p.reportOtherTool(s, &a.Tool, "approve")
		}
		for i := range s.Repeatable {
			p.reportOtherTool(s, &s.Repeatable[i], "repeatable")
		}
	})}
}

// reportOtherTool reports a tool in the list of a key that the agent does not have.
func (p *ruleContext) reportOtherTool(s *spec.Agent, ref *spec.Ref[spec.Tool], key string) {
	if ref.To != nil && !slices.ContainsFunc(s.Tools, func(r spec.Ref[spec.Tool]) bool { return r.To == ref.To }) {
		p.list.Add(p.reportAt(ref.Span, "agent %q does not have the tool %q", s.ID, ref.ID).
			WithHint("add %s to its tools, or remove it from %s", ref.ID, key))
	}
}

func fallbackCycle() rule {
	return rule{code: "QT432", check: on(func(p *ruleContext, d *spec.Document) {
		if !p.here.root {
			return
		}
		var models []*spec.Model
		for _, v := range p.nodes {
			if m, ok := v.node.(spec.ModelEntity); ok {
				models = append(models, m.Base())
			}
		}
		findCycles(models, fallbacksOf, func(cycle []edge[*spec.Model, source.Span]) {
			p.report(cycle[len(cycle)-1].via, "fallback cycle: %s", joinIDs(cycle))
		})
	})}
}

// fallbacksOf returns the fallbacks of a model.
func fallbacksOf(m *spec.Model) []edge[*spec.Model, source.Span] {
	var all []edge[*spec.Model, source.Span]
	for _, ref := range m.Fallbacks {
		if ref.To != nil {
			all = append(all, edge[*spec.Model, source.Span]{ref.To.Base(), ref.Span})
		}
	}
	return all
}

func incompatibleFallback() rule {
	return rule{code: "QT433", check: on(func(p *ruleContext, m spec.ModelEntity) {
		model, isEmbedding := m.(*spec.EmbeddingModel)
		base := m.Base()
		for i := range base.Fallbacks {
			ref := &base.Fallbacks[i]
			if ref.To == nil {
				continue
			}
			other, otherIsEmbedding := ref.To.(*spec.EmbeddingModel)
			switch {
			case isEmbedding != otherIsEmbedding:
				p.list.Add(p.reportAt(ref.Span, "%q is %s and cannot be a fallback of %s %q", ref.ID, an(kindNoun(ref.To)), kindNoun(m), base.ID))
			case isEmbedding && model.Dimensions != other.Dimensions:
				p.list.Add(p.reportAt(ref.Span, "%q has vectors of %d dimensions, but %q has %d", ref.ID, other.Dimensions, base.ID, model.Dimensions).
					WithRelated(placeOf(other, "dimensions", "id"), "its dimensions"))
			case isEmbedding && nameOfModel(model) != nameOfModel(other):
				p.list.Add(p.reportAt(ref.Span, "%q is the model %s, but %q is %s: their vectors cannot be compared", ref.ID, nameOfModel(other), base.ID, nameOfModel(model)).
					WithRelated(placeOf(other, "model_id", "id"), "its name"))
			}
		}
	})}
}

// nameOfModel returns the name of an embedding model without the publisher prefix that
// some servers use.
func nameOfModel(m *spec.EmbeddingModel) string {
	name := cmp.Or(m.ModelID, m.ID)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// linkRules returns the rules of ids and references. All but QT204 are checked while linking.
func linkRules() []rule {
	return []rule{duplicateID(), unknownID(), wrongKind(), flowCycle(), literalBinding(), ambiguousVariable()}
}

func duplicateID() rule {
	return rule{code: "QT201"}
}

func unknownID() rule {
	return rule{code: "QT202"}
}

func wrongKind() rule {
	return rule{code: "QT203"}
}

func literalBinding() rule {
	return rule{code: "QT205"}
}

func ambiguousVariable() rule {
	return rule{code: "QT206"}
}

func flowCycle() rule {
	return rule{code: "QT204", check: on(func(p *ruleContext, _ *spec.Document) { searchFlows(p, false) })}
}

// searchFlows reports the cycles of flows. With tools it follows the tools of agents
// too, and reports only cycles that contain one.
func searchFlows(p *ruleContext, tools bool) {
	if !p.here.root {
		return
	}
	reported := map[source.Span]bool{} // tools
	edges := func(f *spec.Flow) []edge[*spec.Flow, flowEdge] { return calledFlows(f, tools) }
	findCycles(p.flows, edges, func(cycle []edge[*spec.Flow, flowEdge]) {
		span := cycle[len(cycle)-1].via.span
		if tools {
			// The first edge leads to the cycle and is not a part of it.
			i := slices.IndexFunc(cycle[1:], func(e edge[*spec.Flow, flowEdge]) bool { return e.via.tool })
			if i < 0 || reported[cycle[i+1].via.span] {
				return
			}
			span = cycle[i+1].via.span
			reported[span] = true
		}
		p.report(span, "flow cycle: %s", joinIDs(cycle))
	})
}

// flowEdge is a call of a flow by a step.
type flowEdge struct {
	span source.Span // the reference to the flow, or to the tool that runs it
	tool bool        // the flow is called by a tool or a handoff
}

// calledFlows returns the flows that the steps of a flow run; with tools, also the flows
// that their tools run.
func calledFlows(f *spec.Flow, tools bool) []edge[*spec.Flow, flowEdge] {
	var all []edge[*spec.Flow, flowEdge]
	add := func(to *spec.Flow, via flowEdge) {
		if to != nil {
			all = append(all, edge[*spec.Flow, flowEdge]{to, via})
		}
	}
	for _, step := range f.Plan().Steps {
		for _, call := range step.Calls() {
			add(call.Flow.To, flowEdge{span: call.Flow.Span})
		}
		if !tools {
			continue
		}
		for _, ref := range step.ToolRefs() {
			for _, flow := range toolFlows(ref.To) {
				add(flow, flowEdge{span: ref.Span, tool: true})
			}
		}
		for _, ref := range step.Handoffs() {
			add(ref.To, flowEdge{span: ref.Span, tool: true})
		}
	}
	return all
}

// toolFlows returns the flows that a tool runs; t may be nil.
func toolFlows(t spec.Tool) []*spec.Flow {
	if t == nil {
		return nil
	}
	return spec.Linked[*spec.Flow](spec.UsesOf(t), spec.RoleFlow)
}

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
	return rule{code: "QT431", title: "approval for a tool that the agent does not have",
		doc: "approve lists the tools of the agent that require approval before each call, repeatable those whose calls may be repeated.",
		sample: sample{head: sampleModel + `
tools:
  - {type: ClientTool, id: books, name: books, description: Shows books}
  - {type: ClientTool, id: pay, name: pay, description: Pays}`,
			in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [books⟦│, pay⟧], approve: [pay], inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
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
	return rule{code: "QT432", title: "fallback cycle",
		doc: "When a model fails, its fallbacks are called in order, then their fallbacks. A model cannot fall back to itself, directly or through others.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, fallbacks: [spare]}
  - {type: Model, id: spare, provider: mistral, model_id: mistral-small-latest⟦, fallbacks: [writer]│⟧}
`},
		check: on(func(p *ruleContext, d *spec.Document) {
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
	return rule{code: "QT433", title: "incompatible fallback model",
		doc: "A chat model falls back to chat models. An embedding model falls back to the same model on another server with the same dimensions, because vectors of different models cannot be compared.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, fallbacks: [spare]}
  - {type: ⟦EmbeddingModel, dimensions: 8│Model⟧, id: spare, provider: ollama, model_id: spare}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
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

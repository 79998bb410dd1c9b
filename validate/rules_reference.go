package validate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// sharingRules are about lists of what stands beside something: an agent's
// tools that need a yes, the models that step in for another.
func sharingRules() []rule {
	return []rule{approvesForeignTool(), fallbackCycle(), fallbackOfAnotherKind()}
}

func approvesForeignTool() rule {
	return rule{code: "QT431", title: "approval for a tool that the agent does not have",
		doc: "approve lists those of the agent's tools that are called only after a person's yes.",
		sample: sample{head: sampleModel + `
tools:
  - {type: ClientTool, id: books, name: books, description: Shows books}
  - {type: ClientTool, id: pay, name: pay, description: Pays}`,
			in: "said: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [books⟦│, pay⟧], approve: [pay], inputs: [said], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
			for i := range s.Approve {
				tool := s.Approve[i].To
				if tool != nil && !slices.ContainsFunc(s.Tools, func(r spec.Ref[spec.Tool]) bool { return r.To == tool }) {
					p.list.Add(p.reportAt(s.Approve[i].Span, "agent %q does not have the tool %q", s.ID, s.Approve[i].ID).
						WithHint("add %s to its tools, or take it out of approve", s.Approve[i].ID))
				}
			}
		})}
}

func fallbackCycle() rule {
	return rule{code: "QT432", title: "models that fall back on each other in a circle",
		doc: "When a model cannot answer, its fallbacks are asked in order, then theirs. A model that falls back on itself, directly or through others, helps nobody.",
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
			s := modelSearch{pass: p, state: map[*spec.Model]int{}}
			for _, v := range p.nodes {
				if m, ok := v.node.(spec.ModelEntity); ok {
					s.visit(m.Base())
				}
			}
		})}
}

// modelSearch finds models that fall back on themselves, depth first.
type modelSearch struct {
	pass  *ruleContext
	state map[*spec.Model]int // 1 on the path, 2 done
	path  []*spec.Model
}

// visit goes into every fallback of m; one that is still on the path closes a circle.
func (s *modelSearch) visit(m *spec.Model) {
	if s.state[m] != 0 {
		return
	}
	s.state[m] = 1
	s.path = append(s.path, m)
	for i := range m.Fallbacks {
		ref := &m.Fallbacks[i]
		if ref.To == nil {
			continue
		}
		next := ref.To.Base()
		if s.state[next] != 1 {
			s.visit(next)
			continue
		}
		var names []string
		for _, one := range s.path[slices.Index(s.path, next):] {
			names = append(names, one.ID)
		}
		s.pass.report(ref.Span, "fallbacks in a circle: %s", strings.Join(append(names, next.ID), " → "))
	}
	s.path = s.path[:len(s.path)-1]
	s.state[m] = 2
}

func fallbackOfAnotherKind() rule {
	return rule{code: "QT433", title: "a fallback that cannot stand in",
		doc: "A chat model falls back on chat models. An embedding model falls back on embedding models of the same dimensions, and of the same name at another server, because vectors of two models cannot be compared.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, fallbacks: [spare]}
  - {type: ⟦EmbeddingModel, dimensions: 8│Model⟧, id: spare, provider: mistral, model_id: mistral-embed}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			own, isEmbedding := m.(*spec.EmbeddingModel)
			base := m.Base()
			for i := range base.Fallbacks {
				ref := &base.Fallbacks[i]
				if ref.To == nil {
					continue
				}
				other, otherIsEmbedding := ref.To.(*spec.EmbeddingModel)
				switch {
				case isEmbedding != otherIsEmbedding:
					p.list.Add(p.reportAt(ref.Span, "%q is %s and cannot stand in for %s %q", ref.ID, an(nounOf(ref.To)), an(nounOf(m)), base.ID))
				case isEmbedding && own.Dimensions != other.Dimensions:
					p.list.Add(p.reportAt(ref.Span, "%q makes vectors of %d numbers, %q of %d", ref.ID, other.Dimensions, base.ID, own.Dimensions).
						WithRelated(placeOf(other, "dimensions", "id"), "its dimensions"))
				case isEmbedding && nameOfModel(own) != nameOfModel(other):
					p.list.Add(p.reportAt(ref.Span, "%q is the model %s, %q is %s: their vectors cannot be compared", ref.ID, nameOfModel(other), base.ID, nameOfModel(own)).
						WithRelated(placeOf(other, "model_id", "id"), "its name"))
				}
			}
		})}
}

// nameOfModel is the name of an embedding model without the publisher's that some servers put before it.
func nameOfModel(m *spec.EmbeddingModel) string {
	name := cmp.Or(m.ModelID, m.ID)
	return name[strings.LastIndexByte(name, '/')+1:]
}

package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

func toolRules() []rule { return []rule{duplicateToolNames(), unknownURLPart()} }

func duplicateToolNames() rule {
	return rule{code: "QT407", title: "two tools of an agent are called alike",
		doc: "A model calls a tool by its name, so the names of one agent's tools must differ.",
		sample: sample{head: sampleModel + `
tools:
  - {type: APITool, id: books, name: search, description: Finds books, endpoint: "https://shop.example/books"}
  - {type: APITool, id: orders, name: ⟦search│find_orders⟧, description: Finds orders, endpoint: "https://shop.example/orders"}`,
			in: "said: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [books, orders], inputs: [said], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
			first := map[string]spec.Tool{}
			for i := range s.Tools {
				tool := s.Tools[i].To
				name := modelFacingName(tool)
				if name == "" {
					continue
				}
				if earlier := first[name]; earlier != nil && earlier != tool {
					p.list.Add(p.reportAt(s.Tools[i].Span, "the tools %q and %q of agent %q are both called %q", earlier.EntityID(), tool.EntityID(), s.ID, name).
						WithRelated(placeOf(earlier, "name", "id"), "the first one's name").
						WithRelated(placeOf(tool, "name", "id"), "the second one's name"))
				} else if earlier != nil {
					p.list.Add(p.reportAt(s.Tools[i].Span, "the tool %q is given to agent %q twice", tool.EntityID(), s.ID))
				}
				first[name] = tool
			}
		})}
}

// modelFacingName is the name by which models call a tool; empty for what has none of its own.
func modelFacingName(t spec.Tool) string {
	if t == nil {
		return ""
	}
	if f, ok := t.(*spec.FlowTool); ok && f.Name == "" {
		return f.Flow.ID
	}
	return t.Common().Name
}

func unknownURLPart() rule {
	return rule{code: "QT415", warning: true, title: "an endpoint names no argument",
		doc: "{name} in an endpoint is replaced by the input or parameter of that name.",
		sample: sample{text: `
id: example
tools:
  - type: APITool
    id: order
    name: order
    description: Finds an order
    endpoint: "https://shop.example/orders/{⟦id│number⟧}"
    inputs: [{id: number, type: int}]
    outputs: [{id: state, type: text}]
`},
		check: on(func(p *ruleContext, t *spec.APITool) {
			args := t.Arguments()
			for at := 0; ; {
				n := strings.Index(t.Endpoint[at:], "{")
				if n < 0 {
					return
				}
				at += n
				name, _, closed := strings.Cut(t.Endpoint[at+1:], "}")
				at++
				// ${NAME} that was not set stays in the text; that is told elsewhere.
				if !closed || variable(args, name) != nil || strings.HasSuffix(t.Endpoint[:at-1], "$") {
					continue
				}
				p.reportURLPart(t, name, excerptAt(t.Endpoint, at-1, len(name)+2))
			}
		})}
}

// reportURLPart reports a {name} that nothing fills.
func (p *ruleContext) reportURLPart(t *spec.APITool, name string, e excerpt) {
	var ids []string
	for _, v := range t.Arguments() {
		if v != nil {
			ids = append(ids, v.ID)
		}
	}
	finding := p.reportAt(within(placeOf(t, "endpoint"), e), "the endpoint of tool %q names %q, which is not an input", t.ID, name)
	if near := diag.Nearest(name, ids); near != "" {
		finding = finding.WithSuggestion("{" + near + "}")
		if diag.IsUnambiguous(name, near, ids) {
			finding = finding.WithInside("{" + name + "}")
		}
	}
	p.list.Add(finding)
}

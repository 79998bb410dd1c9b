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
	return rule{code: "QT496", title: "hosted tool that an agent cannot have",
		doc: "A HostedTool is run by the provider of the agent's model. Each provider has some kinds of hosted tools. A person can approve the calls of a tool only if the provider asks: OpenAI asks before each call of an mcp tool unless its settings have require_approval: never. Such a tool must be in approve, and no other hosted tool can be.",
		sample: sample{head: `
models:
  - {type: Model, id: writer, provider: ⟦mistral│openai⟧, model_id: ⟦mistral-large-2512│gpt-6-luna⟧}
tools:
  - {type: HostedTool, id: web, hosted: web_search, settings: {server_label: docs, server_url: "https://docs.example/mcp", require_approval: never}}`,
			in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [web], inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
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
	return rule{code: "QT494", title: "hosted tool of a step without a model",
		doc: "The provider of a model runs a HostedTool. A step without a model, such as InvokeTool, cannot call it.",
		sample: sample{head: `
tools:
  - ⟦{type: HostedTool, id: report, hosted: web_search}│{type: APITool, id: report, name: report, description: Reports the weather, endpoint: "https://weather.example/report", outputs: [{id: report, type: text}]}⟧`,
			out:   "summary: text",
			steps: "- {type: InvokeTool, id: ask, tool: report, output_bindings: {⟦│report: summary⟧}}"},
		check: on(func(p *ruleContext, s spec.Step) {
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
	return rule{code: "QT495", title: "grammar of a tool without one text",
		doc: "A grammar restricts one text that the model writes: the tool must have exactly one input, of type text.",
		sample: sample{text: `
id: example
tools:
  - type: ClientTool
    id: draw
    name: draw
    description: Draws a path
    inputs: [{id: path, type: ⟦int│text⟧}]
    grammar: {syntax: regex, definition: "[MLZ0-9 ]+"}
`},
		check: on(func(p *ruleContext, t spec.Tool) {
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
	return rule{code: "QT497", title: "strict tool with an input that no schema describes",
		doc: "With strict: true a model is bound to the types of the inputs. A schema cannot describe any, media, and the record types of the language; a list or a custom type cannot contain them.",
		sample: sample{text: `
id: example
tools:
  - {type: ClientTool, id: file, name: file, description: Files a note, strict: true, inputs: [{id: note, type: ⟦any│text⟧}]}
`},
		check: on(func(p *ruleContext, t spec.Tool) {
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

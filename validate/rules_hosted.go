package validate

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// hostedRules are about tools that providers run, and about grammars of tools.
func hostedRules() []rule { return []rule{hostedUnavailable(), hostedCalled(), grammarInput()} }

func hostedUnavailable() rule {
	return rule{code: "QT496", title: "hosted tool that the provider does not have",
		doc: "A HostedTool is run by the provider of the agent's model. Each provider has some kinds of hosted tools.",
		sample: sample{head: `
models:
  - {type: Model, id: writer, provider: ⟦mistral│anthropic⟧, model_id: ⟦mistral-large-2512│claude-sonnet-5-5⟧}
tools:
  - {type: HostedTool, id: web, hosted: web_search}`,
			in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [web], inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
			if s.Model.To == nil {
				return
			}
			models := []*spec.Model{s.Model.To.Base()}
			for _, ref := range models[0].Fallbacks {
				if ref.To != nil {
					models = append(models, ref.To.Base())
				}
			}
			for _, ref := range s.Tools {
				hosted, ok := ref.To.(*spec.HostedTool)
				if !ok {
					continue
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

func hostedCalled() rule {
	return rule{code: "QT494", title: "hosted tool that is called by the application",
		doc: "The calls of a HostedTool never reach the application, so that a step cannot call it and a person cannot approve its calls. Only the tools of an Agent can have it.",
		sample: sample{head: sampleModel + `
tools:
  - {type: HostedTool, id: web, hosted: web_search}`,
			in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [web]⟦, approve: [web]│⟧, inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			switch s := s.(type) {
			case *spec.InvokeTool:
				p.reportHosted(s.Tool, fmt.Sprintf("step %q cannot call it", s.ID))
			case *spec.Agent:
				for _, ref := range s.Approve {
					p.reportHosted(ref, "its calls cannot be approved")
				}
			}
		})}
}

// reportHosted reports a reference to a HostedTool.
func (p *ruleContext) reportHosted(ref spec.Ref[spec.Tool], problem string) {
	if hosted, ok := ref.To.(*spec.HostedTool); ok {
		p.report(ref.Span, "the provider of the model runs the tool %q: %s", hosted.ID, problem)
	}
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

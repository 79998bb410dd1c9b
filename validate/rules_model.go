package validate

import (
	"regexp"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// modelRules are about what this language adds to models: stand-ins, rules of
// mocks, base URLs. A setting without effect is a fault (memory.md 6), and one
// that only a run can prove idle is a doubt.
func modelRules() []rule {
	return []rule{rulesWithoutMock(), mockAnswers(), mockPattern(), offlineNoMock(), uselessBaseURL(), statusWithoutError(),
		unreachableMockRule(), offlineNeverUsed(), chatWithEmbeddings()}
}

func rulesWithoutMock() rule {
	return rule{code: "QT402", title: "rules on a model that is not a mock",
		doc: "Rules say what a model of provider mock answers; every other model answers for itself.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: ⟦openai│mock⟧, rules: [{text: "Good morning."}]}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			if base := m.Base(); !base.IsMock() && base.Provider != "" && len(base.Rules) > 0 {
				p.report(fieldKey(m, "rules"), "the model %q has rules, but its provider is %s, not mock", base.ID, base.Provider)
			}
		})}
}

func mockAnswers() rule {
	return rule{code: "QT403", title: "a mock rule without exactly one answer",
		doc: "A rule of a mock model says one of: text, tool_calls, error, echo: true.",
		sample: sample{text: `
id: example
models:
  - type: Model
    id: practice
    provider: mock
    rules:
      - {match: refund⟦│, text: "I will refund it."⟧}
`},
		check: on(func(p *ruleContext, r *spec.MockRule) {
			var answers []string
			for _, a := range []struct {
				key string
				set bool
			}{{"text", r.Text != ""}, {"tool_calls", len(r.ToolCalls) > 0}, {"error", r.Error != ""}, {"echo", r.Echo}} {
				// An empty text is an answer too, where it was written.
				if _, written := r.Place().Lookup(a.key); a.set || written && a.key != "echo" {
					answers = append(answers, a.key)
				}
			}
			switch len(answers) {
			case 1:
			case 0:
				p.list.Add(p.reportAt(r.Place().Span(), "the rule says no answer").WithHint("add one of text, tool_calls, error, echo: true"))
			default:
				p.list.Add(p.reportAt(fieldKey(r, answers[1]), "the rule says more than one answer: %s", joinNames(answers)).WithHint("keep one of them"))
			}
		})}
}

func mockPattern() rule {
	return rule{code: "QT404", title: "a mock rule's pattern cannot be read",
		doc: "match is a regular expression in RE2 syntax: no look-around and no back-references.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: practice, provider: mock, rules: [{match: "⟦(refund│(refund)⟧", text: "I will see to it."}]}
`},
		check: on(func(p *ruleContext, r *spec.MockRule) {
			if _, err := regexp.Compile(r.Match); err != nil {
				p.report(placeOf(r, "match"), "the pattern %q cannot be read: %s", r.Match, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		})}
}

func offlineNoMock() rule {
	return rule{code: "QT405", title: "an offline stand-in that is not a mock",
		doc: "While there are no credentials the model named by offline answers, so it must be one that needs none: a model of provider mock.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, offline: practice}
  - {type: Model, id: practice, provider: ⟦openai│mock⟧}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			if to := base.Offline.To; to != nil && !to.IsMock() {
				p.list.Add(p.reportAt(base.Offline.Span, "the model %q cannot stand in offline: its provider is %s, not mock", to.ID, to.Provider).
					WithRelated(placeOf(to, "provider", "id"), "its provider"))
			}
		})}
}

func uselessBaseURL() rule {
	return rule{code: "QT406", title: "a base_url that the provider cannot use",
		doc: "A base_url is the address of a server that speaks the provider's protocol. Mock models ask nobody, and Bedrock and Vertex are found by their region.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: local, provider: ⟦mock│openai⟧, base_url: "http://localhost:11434/v1"}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			if row, ok := spec.LookupProvider(base.Provider); ok && row.BaseURLDoc == "" && base.BaseURL != "" {
				p.report(fieldKey(m, "base_url"), "the provider %s cannot use a base_url", base.Provider)
			}
		})}
}

func statusWithoutError() rule {
	return rule{code: "QT408", title: "a mock rule with a status but no error",
		doc: "status is the HTTP status that the rule's error carries.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: practice, provider: mock, rules: [{⟦text│error⟧: too many requests, status: 429}]}
`},
		check: on(func(p *ruleContext, r *spec.MockRule) {
			// Without any answer there is one fault, not two (QT403).
			answers := r.Text != "" || len(r.ToolCalls) > 0 || r.Echo
			if _, written := r.Place().Lookup("error"); r.Status != 0 && r.Error == "" && !written && answers {
				p.report(fieldKey(r, "status"), "the rule has a status but no error")
			}
		})}
}

func unreachableMockRule() rule {
	return rule{code: "QT412", warning: true, title: "a mock rule that is never reached",
		doc: "The first rule that fits answers. A rule without match and after fits always, so nothing behind it is ever asked.",
		sample: sample{text: `
id: example
models:
  - type: Model
    id: practice
    provider: mock
    rules:
      - {⟦│match: hello, ⟧text: "Good morning."}
      - {match: refund, text: "I will refund it."}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			rules := m.Base().Rules
			for i, r := range rules {
				if r != nil && r.Match == "" && r.After == "" && i+1 < len(rules) && rules[i+1] != nil {
					p.list.Add(p.reportAt(placeOf(rules[i+1], "match"), "this rule is never reached").
						WithRelated(r.Place().Span(), "this one always fits"))
					return
				}
			}
		})}
}

func offlineNeverUsed() rule {
	return rule{code: "QT413", warning: true, title: "an offline stand-in that is never asked",
		doc: "The stand-in answers only while the model has no credentials. A model with an auth or a base_url of its own, and a mock, always answers itself.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, ⟦base_url: "http://localhost:11434/v1", ⟧offline: practice}
  - {type: Model, id: practice, provider: mock}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			if base.Offline.To == nil {
				return
			}
			switch {
			case base.IsMock():
				p.report(base.Offline.Span, "the model %q is a mock itself and needs no stand-in", base.ID)
			case base.BaseURL != "":
				p.report(base.Offline.Span, "the model %q has a base_url, so its stand-in is never asked", base.ID)
			case base.Auth.ID != "":
				p.report(base.Offline.Span, "the model %q has an auth, so its stand-in is never asked", base.ID)
			}
		})}
}

func chatWithEmbeddings() rule {
	return rule{code: "QT414", warning: true, title: "an embedding model is asked for text",
		doc: "An embedding model turns texts into vectors; LLMInference and Agent need a chat model.",
		sample: sample{head: "models:\n  - {type: ⟦EmbeddingModel, dimensions: 8│Model⟧, id: writer, provider: openai, model_id: gpt-4o-mini}",
			in: "said: text", out: "answer: text",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [said], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			for _, model := range spec.Refs[spec.ModelEntity](p.stepPlan(s).Uses, spec.RoleChatModel) {
				if e, ok := model.To.(*spec.EmbeddingModel); ok && !unresolvedInIncomplete(e) {
					p.report(model.Span, "%q is an embedding model; step %q needs a chat model", model.ID, s.EntityID())
				}
			}
		})}
}

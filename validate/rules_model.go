package validate

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// modelRules returns the rules of mocks, offline models and base URLs.
func modelRules() []rule {
	return []rule{rulesWithoutMock(), mockResponse(), mockPattern(), offlineNotMock(), unsupportedBaseURL(), statusWithoutError(),
		unreachableMockRule(), offlineNeverUsed(), embeddingAsChatModel(), unsupportedModelKey(), unavailableForm(), kindOfModel(), refusedParams(), promptCacheWithoutMarkers()}
}

func rulesWithoutMock() rule {
	return rule{code: "QT402", title: "rules on a model that is not a mock",
		doc: "Rules define the responses of a model with the provider mock. Models of other providers cannot have rules.",
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

// mockSample returns a document with a mock model that has these rules.
func mockSample(rules string) sample {
	return sample{text: `
id: example
models:
  - type: Model
    id: practice
    provider: mock
    rules:
` + rules + "\n"}
}

func mockResponse() rule {
	return rule{code: "QT403", title: "mock rule without exactly one response",
		doc:    "A rule of a mock model has exactly one of text, tool_calls, error and echo: true.",
		sample: mockSample(`      - {match: refund⟦│, text: "I will refund it."⟧}`),
		check: on(func(p *ruleContext, r *spec.MockRule) {
			responses := r.Responses()
			switch len(responses) {
			case 1:
			case 0:
				p.list.Add(p.reportAt(r.Position().Span(), "the rule has no response").WithHint("add one of text, tool_calls, error, echo: true"))
			default:
				p.list.Add(p.reportAt(fieldKey(r, responses[1]), "the rule has more than one response: %s", joinNames(responses)).WithHint("keep one of them"))
			}
		})}
}

func mockPattern() rule {
	return rule{code: "QT404", title: "invalid pattern in a mock rule",
		doc: "match and system are regular expressions in RE2 syntax, which has no look-around and no backreferences.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: practice, provider: mock, rules: [{match: "⟦(refund│(refund)⟧", text: "I will see to it."}]}
`},
		check: on(func(p *ruleContext, r *spec.MockRule) {
			// Compiling a pattern only fails while it is parsed, which takes half of the time.
			for _, key := range []struct{ name, pattern string }{{"match", r.Match}, {"system", r.System}} {
				if _, err := syntax.Parse(key.pattern, syntax.Perl); err != nil {
					p.report(placeOf(r, key.name), "invalid pattern %q: %s", key.pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
				}
			}
		})}
}

func offlineNotMock() rule {
	return rule{code: "QT405", title: "offline model that is not a mock",
		doc: "The offline model is used while there are no credentials, so it must not need any: its provider is mock. It is a chat model; that of an embedding model may be an embedding model with the same dimensions.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, offline: practice}
  - {type: Model, id: practice, provider: ⟦openai│mock⟧}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			to := base.OfflineMock()
			if to == nil {
				return
			}
			if !to.IsMock() {
				p.list.Add(p.reportAt(base.Offline.Span, "the model %q cannot be used offline: its provider is %s, not mock", to.ID, to.Provider).
					WithRelated(placeOf(to, "provider", "id"), "its provider"))
			}
			vectors, ok := base.Offline.To.(*spec.EmbeddingModel)
			if !ok {
				return
			}
			switch of, ok := m.(*spec.EmbeddingModel); {
			case !ok:
				p.report(base.Offline.Span, "the model %q cannot be used offline: it is an embedding model", to.ID)
			case of.Dimensions != vectors.Dimensions && of.Dimensions > 0 && vectors.Dimensions > 0:
				p.list.Add(p.reportAt(base.Offline.Span, "the model %q cannot be used offline: its vectors have %d dimensions, not %d", to.ID, vectors.Dimensions, of.Dimensions).
					WithRelated(placeOf(vectors, "dimensions", "id"), "its dimensions"))
			}
		})}
}

func unsupportedBaseURL() rule {
	return rule{code: "QT406", title: "base_url for a provider that does not support it",
		doc: "base_url is the address of a server that implements the provider's protocol. Mock models call no server.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: local, provider: ⟦mock│openai⟧, base_url: "http://localhost:11434/v1"}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			if row, ok := base.ProviderRow(); ok && row.BaseURLDoc == "" && base.BaseURL != "" {
				p.report(fieldKey(m, "base_url"), "the provider %s does not support base_url", base.Provider)
			}
		})}
}

func statusWithoutError() rule {
	return rule{code: "QT408", title: "mock rule with a status but no error",
		doc: "status is the HTTP status of the rule's error.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: practice, provider: mock, rules: [{⟦text│error⟧: too many requests, status: 429}]}
`},
		check: on(func(p *ruleContext, r *spec.MockRule) {
			// A rule without a response is reported as QT403.
			responses := r.Text != "" || len(r.ToolCalls) > 0 || r.Echo
			if _, written := r.Position().Lookup("error"); r.Status != 0 && r.Error == "" && !written && responses {
				p.report(fieldKey(r, "status"), "the rule has a status but no error")
			}
		})}
}

func unreachableMockRule() rule {
	return rule{code: "QT412", warning: true, title: "unreachable mock rule",
		doc: "The first rule that matches is used. A rule without match, system and after always matches, so the rules after it are never used.",
		sample: mockSample(`      - {⟦│match: hello, ⟧text: "Good morning."}
      - {match: refund, text: "I will refund it."}`),
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			rules := m.Base().Rules
			for i, r := range rules {
				if r != nil && r.Position().Complete("match", "system", "after") && r.Match == "" && r.System == "" && r.After == "" && i+1 < len(rules) && rules[i+1] != nil {
					p.list.Add(p.reportAt(placeOf(rules[i+1], "match"), "this rule is never reached").
						WithRelated(r.Position().Span(), "this rule always matches"))
					return
				}
			}
		})}
}

func offlineNeverUsed() rule {
	return rule{code: "QT413", warning: true, title: "offline model that is never used",
		doc: "The offline model is used only while the model has no credentials. It is never used for a mock or a model with an auth or a base_url.",
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
				p.report(base.Offline.Span, "the model %q is a mock and never uses its offline model", base.ID)
			case base.BaseURL != "":
				p.report(base.Offline.Span, "the model %q has a base_url, so its offline model is never used", base.ID)
			case base.Auth.ID != "":
				p.report(base.Offline.Span, "the model %q has an auth, so its offline model is never used", base.ID)
			}
		})}
}

func embeddingAsChatModel() rule {
	return rule{code: "QT414", warning: true, title: "embedding model used as a chat model",
		doc: "An embedding model turns texts into vectors. LLMInference and Agent need a chat model.",
		sample: sample{head: "models:\n  - {type: ⟦EmbeddingModel, dimensions: 8│Model⟧, id: writer, provider: ollama, model_id: writer}",
			in: "question: text", out: "answer: text",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			for _, model := range spec.Refs[spec.ModelEntity](p.stepPlan(s).Uses, spec.RoleChatModel) {
				if e, ok := model.To.(*spec.EmbeddingModel); ok && !isIncompleteEntity(e) {
					p.report(model.Span, "%q is an embedding model; step %q needs a chat model", model.ID, s.EntityID())
				}
			}
		})}
}

func unsupportedModelKey() rule {
	return rule{code: "QT465", title: "key of a model that its provider does not have",
		doc: "Some keys apply to certain providers only: api to openai and azure-openai, deployment and api_version to azure-openai, batch to providers whose batches runs can use. An embedding model has no api, and a batch only where batches have embeddings.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: ⟦anthropic│openai⟧, api: responses}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			row, known := base.ProviderRow()
			_, embeds := m.(*spec.EmbeddingModel)
			for _, key := range spec.ProviderModelKeys() {
				_, written := m.Position().Lookup(key)
				switch {
				case !written || !known:
				case !slices.Contains(row.ModelKeys, key):
					p.report(fieldKey(m, key), "the provider %s does not support %s", row.Name, key)
				case embeds && (key == "api" || key == "batch" && !row.BatchEmbeddings):
					p.report(fieldKey(m, key), "the embedding model %q has no %s", base.ID, key)
				}
			}
		})}
}

func unavailableForm() rule {
	return rule{code: "QT590", title: "form of structured output that the provider does not have",
		doc: "The protocols of some providers cannot request a JSON object, or one that fits a schema. With auto and prompt the model gets the schema in the system message.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: anthropic, structured_output: ⟦json_object│schema⟧}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			row, ok := base.ProviderRow()
			form := base.StructuredOutput
			if !ok || !isForm(form) || row.Client == spec.MissingClient || slices.Contains(row.Forms, form) {
				return
			}
			p.list.Add(p.reportAt(fieldKey(m, "structured_output"), "the provider %s does not have the structured output %s", base.Provider, form).
				WithHint("use %s", joinNames(append(slices.Clone(row.Forms), "prompt", "auto"))))
		})}
}

// isForm reports whether a form of structured output depends on the provider.
func isForm(form string) bool { return form == "schema" || form == "json_object" }

func kindOfModel() rule {
	return rule{code: "QT416", title: "model that its provider does not have",
		doc: "Not every provider has chat models and embedding models: hugot has only embedding models, anthropic only chat models. Of Amazon Bedrock, the embedding models of Titan and Cohere are supported. hugot reads a local folder, and langchaingo:mistral an address without a path.",
		sample: sample{text: `
id: example
models:
  - {type: ⟦Model│EmbeddingModel⟧, id: vectors, provider: hugot, model_id: models/all-MiniLM-L6-v2⟦│, dimensions: 384⟧}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			if key, problem := m.Conflict(); problem != "" && m.Position().Complete("provider", "model_id", "base_url") && isDecided(m.Base().ModelID+m.Base().BaseURL) {
				at := placeOf(m, key, "id")
				if name, _ := m.Base().HeaderConflict(); key == "headers" && name != "" {
					at = m.Position().Field("headers").Field(name).Span()
				}
				p.report(at, "%s", problem)
			}
		})}
}

func refusedParams() rule {
	return rule{code: "QT417", title: "inference_params that a run refuses",
		doc: "inference_params are sent to the provider with each request. A request has some of its fields from the document and the conversation, such as model, messages, stream and tools: inference_params must not contain them. The values are those of JSON, which has no infinite numbers; a parameter that is a number, such as temperature, cannot be a word, which a variable of the environment may have; generationConfig, inferenceConfig, additionalModelRequestFields and options are maps. langchaingo:mistral sends only temperature, max_tokens and random_seed, and hugot has no parameters.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, inference_params: {⟦stream: true│temperature: 0.2⟧}}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			if !m.Position().Complete("provider", "model_id", "api", "inference_params") || !isDecided(m.Base().ModelID) {
				return
			}
			refused, ok := errors.AsType[*modelparams.Error](modelparams.Check(m))
			if !ok || refused.OfValue && isUndecided(m.Base().InferenceParams[refused.Name]) {
				return
			}
			at := placeOf(m, "inference_params", "id")
			if field, written := m.Position().Field("inference_params").Lookup(refused.Name); written {
				at = field.Key
			}
			p.report(at, "the model %q: %s", m.EntityID(), refused)
		})}
}

func promptCacheWithoutMarkers() rule {
	return rule{code: "QT591", title: "prompt_cache for a provider without markers",
		doc: "prompt_cache is about the markers by which a provider caches prompts. Other providers cache without markers, or not at all, so the key has no effect.",
		sample: sample{text: `
id: example
models:
  - {type: Model, id: writer, provider: openai, prompt_cache: ⟦none│auto⟧}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			base := m.Base()
			set := base.PromptCache != "" && base.PromptCache != "auto"
			if row, ok := base.ProviderRow(); ok && row.Client != spec.MissingClient && set && !modelparams.MarksCache(m) && !(base.PromptCache == "none" && hasCacheMarkers(base)) {
				p.report(fieldKey(m, "prompt_cache"), "the provider %s has no markers of the prompt cache, so that %s has no effect", base.Provider, base.PromptCache)
			}
		})}
}

// hasCacheMarkers reports whether a request can mark what the provider caches of a model.
func hasCacheMarkers(m *spec.Model) bool {
	known, ok := m.Known()
	return ok && known.Cache.Breakpoints == catalogue.Yes
}

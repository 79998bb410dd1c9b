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
	return rule{code: "QT402", check: on(func(p *ruleContext, m spec.ModelEntity) {
		if base := m.Base(); !base.IsMock() && base.Provider != "" && len(base.Rules) > 0 {
			p.report(fieldKey(m, "rules"), "the model %q has rules, but its provider is %s, not mock", base.ID, base.Provider)
		}
	})}
}

func mockResponse() rule {
	return rule{code: "QT403", check: on(func(p *ruleContext, r *spec.MockRule) {
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
	return rule{code: "QT404", check: on(func(p *ruleContext, r *spec.MockRule) {
		// Compiling a pattern only fails while it is parsed, which takes half of the time.
		for _, key := range []struct{ name, pattern string }{{"match", r.Match}, {"system", r.System}} {
			if _, err := syntax.Parse(key.pattern, syntax.Perl); err != nil {
				p.report(placeOf(r, key.name), "invalid pattern %q: %s", key.pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		}
	})}
}

func offlineNotMock() rule {
	return rule{code: "QT405", check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT406", check: on(func(p *ruleContext, m spec.ModelEntity) {
		base := m.Base()
		if row, ok := base.ProviderRow(); ok && row.BaseURLDoc == "" && base.BaseURL != "" {
			p.report(fieldKey(m, "base_url"), "the provider %s does not support base_url", base.Provider)
		}
	})}
}

func statusWithoutError() rule {
	return rule{code: "QT408", check: on(func(p *ruleContext, r *spec.MockRule) {
		// A rule without a response is reported as QT403.
		responses := r.Text != "" || len(r.ToolCalls) > 0 || r.Echo
		if _, written := r.Position().Lookup("error"); r.Status != 0 && r.Error == "" && !written && responses {
			p.report(fieldKey(r, "status"), "the rule has a status but no error")
		}
	})}
}

func unreachableMockRule() rule {
	return rule{code: "QT412", warning: true, check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT413", warning: true, check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT414", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		for _, model := range spec.Refs[spec.ModelEntity](p.stepPlan(s).Uses, spec.RoleChatModel) {
			if e, ok := model.To.(*spec.EmbeddingModel); ok && !isIncompleteEntity(e) {
				p.report(model.Span, "%q is an embedding model; step %q needs a chat model", model.ID, s.EntityID())
			}
		}
	})}
}

func unsupportedModelKey() rule {
	return rule{code: "QT465", check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT590", check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT416", check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT417", check: on(func(p *ruleContext, m spec.ModelEntity) {
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
	return rule{code: "QT591", check: on(func(p *ruleContext, m spec.ModelEntity) {
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

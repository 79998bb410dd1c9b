package validate

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

func quoted(id string) string { return strconv.Quote(id) }

// effectRules are about settings that nothing acts on.
func effectRules() []rule { return []rule{withoutEffect(), moneyWithoutPrices()} }

// ignoredSetting is a key that this version reads, checks and does not act on. A setting
// without which a run would be another one is not here: a run refuses it.
type ignoredSetting struct {
	kind spec.Kind // of the entity
	key  string    // a.b is b within a
	why  string
}

// idleKeys is the one table of keys without effect. What learns to act on a key
// takes its row out.
func idleKeys() []ignoredSetting {
	return []ignoredSetting{
		{spec.KindApplication, "telemetry", "traces are not sent yet"},
		{spec.KindFlow, "feedback", "nobody is asked for it yet"},
		{spec.KindVariable, "ui", "there is no user interface yet"},
	}
}

func withoutEffect() rule {
	return rule{code: "QT438", warning: true, title: "a key that has no effect",
		doc: "The key is part of the language, but this version does not act on it: a run is the same with it and without it. Empty limits are such keys, too.",
		sample: sample{in: "name: text", out: "name: text", flow: "budget: {⟦│tokens: 20000⟧}",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: check{wants: reflect.TypeFor[spec.Node](), run: func(p *ruleContext, n spec.Node) {
			if e, ok := n.(spec.Entity); ok {
				p.idle(e)
			}
			switch limits := n.(type) {
			case *spec.Budget:
				if limits.Tokens == 0 && limits.Calls == 0 && limits.Seconds == 0 && limits.Money == 0 {
					p.empty(n, "the budget limits nothing", "tokens, calls, seconds or money")
				}
			case *spec.RateLimit:
				if limits.RequestsPerMinute == 0 && limits.TokensPerMinute == 0 {
					p.empty(n, "the rate limit limits nothing", "requests_per_minute or tokens_per_minute")
				}
			}
		}}}
}

// idle reports the keys of an entity that have no effect.
func (p *ruleContext) idle(e spec.Entity) {
	for _, k := range idleKeys() {
		if k.kind != e.Kind() {
			continue
		}
		at, written := e.Place(), true
		for key := range strings.SplitSeq(k.key, ".") {
			if at, written = at.Lookup(key); !written {
				break
			}
		}
		if written && len(at.Parts) > 0 {
			p.report(at.Key, "%q of %s has no effect: %s", k.key, nameOf(e), k.why)
		}
	}
}

// empty reports a mapping of limits without any.
func (p *ruleContext) empty(n spec.Node, what, keys string) {
	if n.Place() != nil && len(n.Place().Parts) == 0 {
		p.list.Add(p.reportAt(n.Place().Span(), "%s", what).WithHint("give %s", keys))
	}
}

func moneyWithoutPrices() rule {
	return rule{code: "QT439", warning: true, title: "a budget in money for a model without prices",
		doc: "What a model call costs is reckoned from the model's prices. A model without them costs nothing as far as the budget can tell.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: openai⟦│, prices: {input: 0.15, output: 0.6}⟧}",
			in: "said: text", out: "answer: text", flow: "budget: {money: 2}",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [said], outputs: [answer]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Budget == nil || f.Budget.Money == 0 {
				return
			}
			for _, step := range f.Plan().Steps {
				if m, _ := p.chatOf(step.Step); m != nil && m.Prices == nil && !m.IsMock() {
					p.list.Add(p.reportAt(placeOf(f.Budget, "money"), "the budget of flow %q is in money, but the model %q has no prices", f.ID, m.ID).
						WithRelated(idPlace(m), fmt.Sprintf("add prices: to the model %q", m.ID)))
				}
			}
		})}
}

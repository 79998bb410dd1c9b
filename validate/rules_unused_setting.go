package validate

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// quoted returns an id in quotes.
func quoted(id string) string { return strconv.Quote(id) }

// unusedSettingRules returns the rules of settings without effect.
func unusedSettingRules() []rule { return []rule{ignoredKey(), moneyWithoutPrices()} }

// ignoredKey reports settings that are written and have no effect.
func ignoredKey() rule {
	return rule{code: "QT438", warning: true, title: "setting without effect",
		doc: "A budget or a rate limit without any limit limits nothing, keep_tool_results is for shorten_tool_results, base of a FileSource or FileWriter is for paths of variables, csv_safe for CSV and TSV files, and auth_audience of a tool is for the credentials of a cloud: an auth of type aws or azure.",
		sample: sample{in: "name: text", out: "name: text", flow: "budget: {⟦│tokens: 20000⟧}",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: check{nodeType: reflect.TypeFor[spec.Node](), run: func(p *ruleContext, n spec.Node) {
			switch n := n.(type) {
			case *spec.Budget:
				if n.Tokens == 0 && n.Calls == 0 && n.Seconds == 0 && n.Money == 0 {
					p.reportEmpty(n, "the budget has no limit", "tokens, calls, seconds or money")
				}
			case *spec.RateLimit:
				if n.RequestsPerMinute == 0 && n.TokensPerMinute == 0 {
					p.reportEmpty(n, "the rate limit has no limit", "requests_per_minute or tokens_per_minute")
				}
			case *spec.Memory:
				if at, given := n.Position().Lookup("keep_tool_results"); given && n.ShortenToolResults == 0 {
					p.list.Add(p.reportAt(at.Span(), "keep_tool_results of memory %q has no effect without shorten_tool_results", n.ID))
				}
			case *spec.FileSource:
				p.reportUnusedBase(n, n.Path, n.Base)
			case *spec.FileWriter:
				p.reportUnusedBase(n, n.Path, n.Base)
				if n.CSVSafe && n.Path.URI != "" && !isCellFile(n.Path.URI) {
					p.report(placeOf(n, "csv_safe"), "csv_safe of step %q has no effect: %s is not a CSV or TSV file", n.ID, n.Path.URI)
				}
			case *spec.APITool:
				if n.AuthAudience != "" && !hasAudience(n.Auth.To) {
					p.report(placeOf(n, "auth_audience"), "auth_audience of tool %q is for an auth of type aws or azure", n.ID)
				}
			}
		}}}
}

// reportUnusedBase reports a base folder of a constant path, which is not limited.
func (p *ruleContext) reportUnusedBase(n spec.Step, path spec.PathRef, base string) {
	if base != "" && path.URI != "" {
		p.report(placeOf(n, "base"), "base of step %q has no effect: the path %s is constant", n.EntityID(), path.URI)
	}
}

// isCellFile reports whether a path is that of a CSV or TSV file, which may be compressed.
func isCellFile(path string) bool {
	path = strings.ToLower(path)
	for _, compressed := range []string{".gz", ".zst", ".zstd"} {
		path = strings.TrimSuffix(path, compressed)
	}
	return slices.Contains([]string{".csv", ".tsv", ".tab"}, filepath.Ext(path))
}

// hasAudience reports whether credentials are for a named service or resource.
func hasAudience(auth spec.Auth) bool {
	switch auth.(type) {
	case *spec.AWSAuth, *spec.AzureAuth:
		return true
	}
	return false
}

// reportEmpty reports a mapping without limits.
func (p *ruleContext) reportEmpty(n spec.Node, what, keys string) {
	if n.Position() != nil && len(n.Position().Parts) == 0 {
		p.list.Add(p.reportAt(n.Position().Span(), "%s", what).WithHint("set %s", keys))
	}
}

func moneyWithoutPrices() rule {
	return rule{code: "QT439", warning: true, title: "budget in money for a model without prices",
		doc: "The cost of a model call is computed from the model's prices, or from the built-in ones of common models. Calls of a model without prices do not count towards the budget.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: openai, model_id: our-model⟦│, prices: {input: 0.15, output: 0.6}⟧}",
			in: "question: text", out: "answer: text", flow: "budget: {money: 2}",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Budget == nil || f.Budget.Money == 0 {
				return
			}
			for _, step := range f.Plan().Steps {
				if m, _ := p.modelAndMemoryOf(step.Step); m != nil && m.CallPrices() == nil && !m.IsMock() {
					p.list.Add(p.reportAt(placeOf(f.Budget, "money"), "the budget of flow %q is in money, but the model %q has no prices", f.ID, m.ID).
						WithRelated(idPlace(m), fmt.Sprintf("add prices: to the model %q", m.ID)))
				}
			}
		})}
}

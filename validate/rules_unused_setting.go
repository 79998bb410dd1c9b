package validate

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// quoted returns an id in quotes.
func quoted(id string) string { return strconv.Quote(id) }

// unusedSettingRules returns the rules of settings without effect.
func unusedSettingRules() []rule { return []rule{ignoredKey(), moneyWithoutPrices()} }

// ignoredKey reports settings that are written and have no effect.
func ignoredKey() rule {
	return rule{code: "QT438", warning: true, check: anyOf(on(budgetWithoutLimit), on(rateLimitWithoutLimit), on(unusedMemorySettings), on(unusedSourceSettings), on(unusedWriterSettings), on(unusedEmbeddingSettings), on(unusedAudience), on(unusedEndpoint))}
}

// anyOf returns a check of nodes of several types.
func anyOf(checks ...check) check {
	return check{nodeType: reflect.TypeFor[spec.Node](), run: func(p *ruleContext, n spec.Node) {
		for _, c := range checks {
			c.run(p, n)
		}
	}}
}

func budgetWithoutLimit(p *ruleContext, b *spec.Budget) {
	if b.Tokens == 0 && b.Calls == 0 && b.Seconds == 0 && b.Money == 0 {
		p.reportEmpty(b, "the budget has no limit", "tokens, calls, seconds or money")
	}
}

func rateLimitWithoutLimit(p *ruleContext, l *spec.RateLimit) {
	if _, waits := l.Position().Lookup("max_wait"); l.RequestsPerMinute == 0 && l.TokensPerMinute == 0 && !waits { // max_wait is for the limit of the provider
		p.reportEmpty(l, "the rate limit has no limit", "requests_per_minute or tokens_per_minute")
	}
}

func unusedMemorySettings(p *ruleContext, m *spec.Memory) {
	if at, given := m.Position().Lookup("keep_tool_results"); given && m.ShortenToolResults == 0 {
		p.list.Add(p.reportAt(at.Span(), "keep_tool_results of memory %q has no effect without shorten_tool_results", m.ID))
	}
	row, _ := m.Row()
	if at, given := m.Position().Lookup("prefix"); given && row.Supports("prefix") && !m.MovesContext() {
		p.list.Add(p.reportAt(at.Span(), "prefix of memory %q has no effect without context blocks that change, such as variables", m.ID))
	}
	for _, key := range []string{"chat_history_token_ratio", "token_flush_size"} {
		if at, given := m.Position().Lookup(key); given && m.CompactAt > 0 {
			p.list.Add(p.reportAt(at.Span(), "%s of memory %q has no effect with compact_at, which replaces it", key, m.ID))
		}
	}
}

func unusedSourceSettings(p *ruleContext, s *spec.FileSource) {
	p.reportUnusedBase(s, s.Path, s.Base)
	if format := spec.FileFormat(s.Path.URI); format != "" {
		if key, formats := s.Table.Unfit(format); key != "" {
			p.report(placeOf(s.Table, key), "%s in the table of step %q has no effect: it is for %s, and %s is %s", key, s.ID, formats, s.Path.URI, format)
		}
	}
}

func unusedWriterSettings(p *ruleContext, w *spec.FileWriter) {
	p.reportUnusedBase(w, w.Path, w.Base)
	if w.CSVSafe && w.Path.URI != "" && !isCellFile(w.Path.URI) {
		p.report(placeOf(w, "csv_safe"), "csv_safe of step %q has no effect: %s is not a CSV or TSV file", w.ID, w.Path.URI)
	}
}

func unusedEmbeddingSettings(p *ruleContext, m *spec.EmbeddingModel) {
	for _, key := range []string{"on_truncation", "structured_output", "context_window"} {
		if at, given := m.Position().Lookup(key); given {
			p.report(at.Span(), "%s of embedding model %q has no effect: it is for chat models", key, m.ID)
		}
	}
}

func unusedAudience(p *ruleContext, t *spec.APITool) {
	if t.AuthAudience != "" && !hasAudience(t.Auth.To) {
		p.report(placeOf(t, "auth_audience"), "auth_audience of tool %q is for an auth of type aws or azure", t.ID)
	}
}

// unusedEndpoint reports an endpoint to which a run sends nothing.
func unusedEndpoint(p *ruleContext, t *spec.Telemetry) {
	endpoint := t.Endpoint.Reveal()
	if endpoint != "" && t.Endpoint.Ref == nil && isDecided(endpoint) && !spec.IsHTTPAddress(endpoint) {
		p.report(placeOf(t, "endpoint"), "nothing is sent to the endpoint of telemetry sink %q: it is not an http or https address", t.ID)
	}
}

// reportUnusedBase reports a base folder of a constant path, which is not limited.
func (p *ruleContext) reportUnusedBase(n spec.Step, path spec.PathRef, base string) {
	if base != "" && path.URI != "" {
		p.report(placeOf(n, "base"), "base of step %q has no effect: the path %s is constant", n.EntityID(), path.URI)
	}
}

// isCellFile reports whether a path names a CSV or TSV file, which may be compressed.
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
	return rule{code: "QT439", check: on(func(p *ruleContext, f *spec.Flow) {
		if f.Budget == nil || f.Budget.Money == 0 {
			return
		}
		var names []string
		var places []diag.Related
		for _, m := range calledModels(f) {
			if m.CallPrices() == nil && !m.IsMock() {
				names = append(names, strconv.Quote(m.ID))
				places = append(places, diag.Related{Span: idPlace(m), Message: fmt.Sprintf("add prices: to the model %q", m.ID)})
			}
		}
		for step := range f.Plan().All() {
			ranker, ok := step.Step.(spec.ChargedRanker)
			if !ok {
				continue
			}
			if m, charged := ranker.RankModel(); charged && m.Prices == nil && isDecided(m.Name) {
				names = append(names, strconv.Quote(m.Name))
				places = append(places, diag.Related{Span: idPlace(ranker), Message: "add a row for the model to models.yaml"})
			}
		}
		if len(names) == 0 {
			return
		}
		what := "the model " + names[0] + " has"
		if len(names) > 1 {
			what = "the models " + textfmt.List(names) + " have"
		}
		found := p.reportAt(placeOf(f.Budget, "money"), "the budget of flow %q is in money, but %s no prices", f.ID, what)
		for _, place := range places {
			found = found.WithRelated(place.Span, place.Message)
		}
		p.list.Add(found)
	})}
}

// calledModels lists the models that the steps of a flow call, and their fallbacks, once each.
func calledModels(f *spec.Flow) []*spec.Model {
	var all []*spec.Model
	add := func(e spec.ModelEntity) {
		if e != nil && !slices.Contains(all, e.Base()) {
			all = append(all, e.Base())
		}
	}
	for step := range f.Plan().All() {
		for _, m := range step.Models() {
			add(m)
			for _, other := range m.Base().Fallbacks {
				add(other.To)
			}
		}
	}
	return all
}

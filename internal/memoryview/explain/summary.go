package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// A report with more than maxLines ranges has one line each for the newest ones, and one
// line for all others.
const (
	maxLines = 12
	newest   = 5
)

// missing describes each range of messages that was not sent, or the number of ranges.
func (r *Report) missing() (lines []string) {
	gaps := r.Missing
	if !r.page && len(gaps) > maxLines {
		lines = append(lines, summaryOf(gaps[:len(gaps)-newest]))
		gaps = gaps[len(gaps)-newest:]
	}
	for _, g := range gaps {
		lines = append(lines, g.text())
	}
	return lines
}

// summaryOf describes many ranges of messages.
func summaryOf(gaps []Gap) string {
	messages, tokens, byKind := 0, 0, map[store.EventKind]int{}
	first, last := gaps[0].Turn, gaps[0].Turn
	for _, g := range gaps {
		messages, tokens = messages+g.Messages, tokens+g.Tokens
		first, last = min(first, g.Turn), max(last, g.Turn)
		byKind[g.Kind]++
	}
	var parts []string
	for _, one := range []struct {
		kind store.EventKind
		noun string
	}{
		{store.EventFlush, "eviction"}, {store.EventFailed, "failed turn"}, {store.EventSet, "replaced window"},
		{store.EventRewind, "rewind"}, {store.EventDelete, "deletion"}, {budget, "range over the context window"}, {limit, "range over the policy's limit"},
	} {
		if n := byKind[one.kind]; n > 0 {
			parts = append(parts, textfmt.Count(n, one.noun))
		}
	}
	return fmt.Sprintf("%s, %s tokens, in positions %s to %s: %s, in turns %s to %s; --from %d lists them",
		textfmt.Count(messages, "message"), textfmt.Thousands(tokens), textfmt.Thousands(gaps[0].From), textfmt.Thousands(gaps[len(gaps)-1].To),
		strings.Join(parts, ", "), textfmt.Thousands(first), textfmt.Thousands(last), gaps[0].From)
}

// Select keeps only what concerns the messages from a position on, at most limit of those
// that were sent, and at most limit ranges of the others; 0 is no limit.
func (r *Report) Select(from int64, limit int) {
	r.page = true
	for len(r.Sent) > 0 && r.Sent[0].Seq < from {
		r.Sent = r.Sent[1:]
	}
	for len(r.Missing) > 0 && r.Missing[0].To < from {
		r.Missing = r.Missing[1:]
	}
	if limit > 0 {
		r.Sent, r.Missing = r.Sent[:min(limit, len(r.Sent))], r.Missing[:min(limit, len(r.Missing))]
	}
}

// Prefix is how a request continues the one before, and what the provider's cache could not have.
type Prefix struct {
	store.Prefix
	Why  string   `json:"why"`            // the reason in words
	Cost *float64 `json:"cost,omitempty"` // of Lost: the price of input less that of cached input; nil if the prices are unknown or the same
}

// AddPrices adds what each cache miss cost, by the prices of the model; nil if they are unknown.
// Without a call of a model it does nothing.
func (r *Report) AddPrices(pricesOf func(model string) *catalogue.Prices) {
	if r.Call == nil {
		return
	}
	prices := pricesOf(r.Call.Model)
	for i := range r.Prefix {
		if p := &r.Prefix[i]; prices != nil && p.Lost > 0 {
			if cost := lostCost(prices, p.Lost, r.Time); cost > 0 {
				p.Cost = &cost
			}
		}
	}
}

// lostCost returns how much more tokens cost than if the provider had read them from its cache.
func lostCost(prices *catalogue.Prices, tokens int, at time.Time) float64 {
	charge := func(cached int) float64 {
		return prices.Charge(at, "", catalogue.Usage{Input: tokens, CachedInput: cached}).Amount
	}
	return charge(0) - charge(tokens)
}

// addPrefix adds how the calls of the turn continue the requests before.
func (r *Report) addPrefix() {
	if r.Call == nil {
		return
	}
	for _, p := range r.Call.Prefix {
		r.Prefix = append(r.Prefix, Prefix{Prefix: p, Why: p.Reason.Text(p.Part, p.Message)})
	}
}

// writePrefix writes how the calls of the turn continue the requests before.
func (r *Report) writePrefix(b *strings.Builder) {
	for i := range r.Prefix {
		p := &r.Prefix[i]
		which := "the request"
		if r.Call.Calls > 1 {
			which = fmt.Sprintf("call %d", p.Call)
		}
		if p.Reason == prefix.Appended {
			fmt.Fprintf(b, "%s begins with the whole request before: %s tokens\n", which, textfmt.Thousands(p.Tokens))
			continue
		}
		text := fmt.Sprintf("%s differs from the request before at byte %s, after %s tokens: %s; a cache of the provider does not have the %s tokens that followed",
			which, textfmt.Thousands(p.Bytes), textfmt.Thousands(p.Tokens), cmp.Or(p.Why, "unknown"), textfmt.Thousands(p.Lost))
		if p.Cost != nil {
			text += fmt.Sprintf(", which costs up to %s more", textfmt.Amount(*p.Cost))
		}
		b.WriteString(textfmt.Wrap(text, 100, "", "  "))
	}
}

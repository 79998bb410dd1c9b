package explain

import (
	"fmt"
	"strings"

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

package window

import (
	"fmt"
	"math"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// flush is QType's policy: once the tokens exceed the chat share of
// token_limit, the oldest messages leave in large blocks, up to the start of a
// round. Between two flushes the window only grows, so that a provider's prompt
// cache stays valid.
type flush struct {
	KeepAll
	limit int     // token_limit
	share float64 // chat_history_token_ratio
	cap   int     // the most tokens of the window: limit × share
	size  int     // the fewest tokens that leave at a time
	at    float64 // compact_at, 0 for none
}

func newFlush(l Limits) Policy {
	p := &flush{limit: l.int("token_limit"), share: l["chat_history_token_ratio"]}
	// Users write the ratio as a decimal number: 100 × 0.29 must be 29, though the
	// product of the binary fractions is slightly less.
	p.cap = int(math.Floor(float64(p.limit)*p.share + 1e-6))
	p.size = min(l.int("token_flush_size"), p.cap)
	return p
}

// CompactAt makes a share of the limit the cap, and lets half of it leave at a time.
func (p *flush) CompactAt(share float64) {
	p.at = share
	p.cap = max(int(math.Floor(float64(p.limit)*share+1e-6)), 1)
	p.size = max(p.cap/2, 1)
}

// Evict returns blocks of at least size tokens, each up to the next user
// message, until the rest fits. The newest round stays.
func (p *flush) Evict(v *View, own, user int) Eviction {
	tokens, entries := v.Tokens+v.Others, v.Entries
	if tokens <= p.cap {
		return Eviction{}
	}
	newest := NewestRound(entries, own, user)
	n := 0
	for tokens > p.cap && n < newest {
		block := 0
		for n < newest && (block == 0 || block < p.size || !IsUser(entries[n])) {
			block += entries[n].Tokens
			n++
		}
		tokens -= block
	}
	return evictPrefix(n)
}

func (p *flush) Usage(_, tokens int) (int, int, store.Unit) { return tokens, p.cap, store.InTokens }

// ContextLimit returns the most tokens that messages and context may have together.
func (p *flush) ContextLimit() int { return p.limit }

// Describe writes the reason at once: the limits may be others when it is read.
func (p *flush) Describe(e *store.Event, rest []*store.Entry) {
	to := "to the newest message"
	if IsUser(rest[0]) {
		to = "to the start of a round"
	}
	if p.at > 0 {
		e.Reason = fmt.Sprintf("%s tokens%s exceeded compact_at %v of token_limit %s; at least %s had to leave, %s left, %s",
			textfmt.Thousands(e.Before), othersOf(e), p.at, textfmt.Thousands(p.limit), textfmt.Thousands(max(p.size, e.Before-p.cap)), textfmt.Thousands(e.Tokens), to)
		return
	}
	e.Reason = fmt.Sprintf("%s tokens exceeded the chat share of %s (token_limit %s × chat_history_token_ratio %v); at least %s had to leave, %s left, %s",
		textfmt.Thousands(e.Before), textfmt.Thousands(p.cap), textfmt.Thousands(p.limit), p.share, textfmt.Thousands(max(p.size, e.Before-p.cap)), textfmt.Thousands(e.Tokens), to)
	if left := e.Before - e.Tokens; left > p.cap {
		e.Reason += fmt.Sprintf("; the newest round stays, though its %s tokens exceed the share", textfmt.Thousands(left))
	}
}

// othersOf describes what is counted in addition to the messages.
func othersOf(e *store.Event) string {
	if e.Others == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of them for the rest of the call,", textfmt.Thousands(e.Others))
}

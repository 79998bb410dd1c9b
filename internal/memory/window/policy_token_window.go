package window

import (
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// tokenWindow keeps the newest messages within a number of tokens, as
// LangChain4j's TokenWindowChatMemory does.
type tokenWindow struct {
	countedSystem
	max int // max_tokens
}

func newTokenWindow(l Limits) Policy { return &tokenWindow{max: l.int("max_tokens")} }

func (p *tokenWindow) Evict(v *View, _, _ int) Eviction {
	n := orphanedResults(v)
	tokens := v.Tokens + v.SystemTokens()
	for _, e := range v.Entries[:n] {
		tokens -= e.Tokens
	}
	for tokens > p.max && n < len(v.Entries) {
		for range v.unit(n) {
			tokens -= v.Entries[n].Tokens
			n++
		}
	}
	return evictPrefix(n)
}

// SelectForCall applies the limit again, as that of messageWindow does.
func (p *tokenWindow) SelectForCall(v *View) Selection { return Selection{Left: p.Evict(v, 0, -1)} }

func (p *tokenWindow) Usage(_, tokens int) (int, int, store.Unit) {
	return tokens, p.max, store.InTokens
}

func tokenWindowReason(e store.Event) string {
	return windowReason(e, "max_tokens", textfmt.Thousands(e.Before)+" tokens in the window",
		textfmt.Thousands(max(e.Before-e.Limit, 0)), textfmt.Thousands(e.Tokens))
}

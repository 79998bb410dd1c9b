package memory

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

func newTokenWindow(l Limits) evictionPolicy { return &tokenWindow{max: l.int("max_tokens")} }

func (p *tokenWindow) evict(v *view, _, _ int) eviction {
	n := orphanedResults(v)
	tokens := v.tokens + v.systemTokens()
	for _, e := range v.entries[:n] {
		tokens -= e.Tokens
	}
	for tokens > p.max && n < len(v.entries) {
		for range v.unit(n) {
			tokens -= v.entries[n].Tokens
			n++
		}
	}
	return evictPrefix(n)
}

// selectForCall applies the limit again, as that of messageWindow does.
func (p *tokenWindow) selectForCall(v *view) selection { return selection{left: p.evict(v, 0, -1)} }

func (p *tokenWindow) usage(_, tokens int) (int, int, store.Unit) {
	return tokens, p.max, store.InTokens
}

func tokenWindowReason(e store.Event) string {
	return windowReason(e, "max_tokens", textfmt.Thousands(e.Before)+" tokens in the window",
		textfmt.Thousands(max(e.Before-e.Limit, 0)), textfmt.Thousands(e.Tokens))
}

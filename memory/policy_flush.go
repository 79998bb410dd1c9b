package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// QType's defaults (reference memory.md 2).
const (
	defaultTokenLimit = 100_000
	defaultChatShare  = 0.7
	defaultFlushSize  = 3_000
)

// flush is QType's policy: once the chat share is exceeded, the oldest messages
// leave, a good lot at a time, up to the start of a round.
type flush struct {
	limit int     // token_limit
	share float64 // chat_history_token_ratio
	cap   int     // limit × share: the most tokens that the window may hold
	size  int     // tokens that leave at a time at least
}

// newFlush is for limits that were checked.
func newFlush(l Limits) *flush {
	p := &flush{limit: l.TokenLimit, share: l.ChatShare, size: l.FlushSize}
	if p.limit == 0 {
		p.limit = defaultTokenLimit
	}
	if p.share == 0 {
		p.share = defaultChatShare
	}
	if p.size == 0 {
		p.size = defaultFlushSize
	}
	// The ratio is a decimal number to the one who wrote it: 100 × 0.29 is 29,
	// though the product of the binary fractions falls short of it.
	p.cap = int(math.Floor(float64(p.limit)*p.share + 1e-6))
	p.size = min(p.size, p.cap) // reference memory.md 2.7
	return p
}

// evictCount tells how many of the oldest entries must leave: none while their tokens
// are within the cap; else lots of at least size tokens, each up to the next
// user message, until the rest is within the cap. The newest round stays
// (reference memory.md 2.2, 2.3).
func (p *flush) evictCount(v *view, own, user int) int {
	tokens, entries := v.tokens, v.entries
	if tokens <= p.cap {
		return 0
	}
	newest := newestRound(entries, own, user)
	n := 0
	for tokens > p.cap && n < newest {
		lot := 0
		for n < newest && (lot == 0 || lot < p.size || entries[n].Message.Role != chat.User) {
			lot += entries[n].Tokens
			n++
		}
		tokens -= lot
	}
	return n
}

func (p *flush) selectForCall(*view) selection        { return selection{} }
func (p *flush) usage(_, tokens int) (int, int, Unit) { return tokens, p.cap, InTokens }
func (p *flush) countsSystem() bool                   { return false }

// newestRound is the index where the newest round begins (reference memory.md
// 2.3): own is the index of the newest turn's first message, user that of the
// last user message up to own, or -1. Where no user message precedes the
// turn, its round begins at the first one in it, so that a window that was
// flushed begins with a user message; where there is none at all, the turn's
// own messages stay, and with a tool's result the call that it answers.
func newestRound(entries []*Entry, own, user int) int {
	if user >= 0 {
		return user
	}
	for i := own; i < len(entries); i++ {
		if entries[i].Message.Role == chat.User {
			return i
		}
	}
	for i := own; i >= 0; i-- {
		if len(entries[i].Message.ToolCalls) > 0 {
			return i
		}
		if !result(entries[i].Message.Role) {
			break
		}
	}
	return own
}

// describe tells by which rule and numbers a flush happened; the limits may be
// others when it is read.
func (p *flush) describe(e *Event, rest []*Entry) {
	e.Rule = spec.PolicyFlush
	to := "to the newest message"
	if rest[0].Message.Role == chat.User {
		to = "to the start of a round"
	}
	s := fmt.Sprintf("%s tokens were over the chat share of %s (token_limit %s × chat_history_token_ratio %v); %s had to go, %s went, %s",
		thousands(e.Before), thousands(p.cap), thousands(p.limit), p.share, thousands(max(p.size, e.Before-p.cap)), thousands(e.Tokens), to)
	if left := e.Before - e.Tokens; left > p.cap {
		s += fmt.Sprintf("; the newest round stays, though its %s tokens are over it", thousands(left))
	}
	e.Reason = s
}

// thousands is n with commas: 36,102.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

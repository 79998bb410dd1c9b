package memory

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// messageWindow is LangChain4j's window over messages (reference memory.md 3).
type messageWindow struct{ max int }

func (p *messageWindow) evictCount(v *view, _, _ int) int {
	n := orphanedResults(v)
	for rest := len(v.entries) - n; n < len(v.entries) && rest+v.systems() > p.max; rest = len(v.entries) - n {
		n += unit(v.entries[n:])
	}
	return n
}

// selectForCall fits once more: a limit that was lowered holds for every read, and one
// that is raised again gives back what no append has evicted meanwhile.
func (p *messageWindow) selectForCall(v *view) selection {
	return selection{from: p.evictCount(v, 0, -1)}
}

func (p *messageWindow) usage(messages, _ int) (int, int, Unit) { return messages, p.max, InMessages }

func (p *messageWindow) countsSystem() bool { return true }

func (p *messageWindow) describe(e *Event, _ []*Entry) { e.Rule = spec.PolicyMessageWindow }

func messageReason(e Event) string {
	return windowReason(e, "max_messages", counted(e.Before, "message")+" in the window",
		counted(max(e.Before-e.Limit, 0), "message"), counted(e.Messages, "message"))
}

// tokenWindow is LangChain4j's window over tokens.
type tokenWindow struct{ max int }

func (p *tokenWindow) evictCount(v *view, _, _ int) int {
	n := orphanedResults(v)
	tokens := v.tokens + v.systemTokens()
	for _, e := range v.entries[:n] {
		tokens -= e.Tokens
	}
	for tokens > p.max && n < len(v.entries) {
		for range unit(v.entries[n:]) {
			tokens -= v.entries[n].Tokens
			n++
		}
	}
	return n
}

func (p *tokenWindow) selectForCall(v *view) selection {
	return selection{from: p.evictCount(v, 0, -1)}
}

func (p *tokenWindow) usage(_, tokens int) (int, int, Unit) { return tokens, p.max, InTokens }

func (p *tokenWindow) countsSystem() bool { return true }

func (p *tokenWindow) describe(e *Event, _ []*Entry) { e.Rule = spec.PolicyTokenWindow }

func tokenReason(e Event) string {
	return windowReason(e, "max_tokens", thousands(e.Before)+" tokens in the window",
		thousands(max(e.Before-e.Limit, 0)), thousands(e.Tokens))
}

// windowReason says by which limit messages left, how much had to go and how much went.
func windowReason(e Event, key, before, had, went string) string {
	if e.Before <= e.Limit {
		return "a tool's results left, because their call had left before"
	}
	return fmt.Sprintf("%s were over %s %s; %s had to go, %s went", before, key, thousands(e.Limit), had, went)
}

// orphanedResults is how many entries at the front are results of a tool call that left
// before they came: they leave with it, late as they are (reference memory.md
// 6: a tool call and its results are evicted together or not at all).
func orphanedResults(v *view) int {
	n := 0
	if v.state.Open {
		for n < len(v.entries) && result(v.entries[n].Message.Role) {
			n++
		}
	}
	return n
}

// hasOpenCalls tells whether, once the first n entries left, results that are yet to
// come belong to a call that left.
func hasOpenCalls(v *view, n int) bool {
	if n < len(v.entries) {
		return false
	}
	for i := n - 1; i >= 0; i-- {
		if len(v.entries[i].Message.ToolCalls) > 0 {
			return true
		}
		if !result(v.entries[i].Message.Role) {
			return false
		}
	}
	return v.state.Open
}

// systems is how many system messages stand in the window: none or one.
func (v *view) systems() int {
	if v.systemEntry() == nil {
		return 0
	}
	return 1
}

func (v *view) systemTokens() int {
	if e := v.systemEntry(); e != nil {
		return e.Tokens
	}
	return 0
}

// size is how many messages and tokens a policy counts.
func (v *view) size(p evictionPolicy) (messages, tokens int) {
	if p.countsSystem() {
		return len(v.entries) + v.systems(), v.tokens + v.systemTokens()
	}
	return len(v.entries), v.tokens
}

// systemEntry is the system message that was said, else the step's; nil for none.
func (v *view) systemEntry() *Entry {
	if v.system != nil {
		return v.system
	}
	return v.brought
}

// Policy is what evicts the memory's messages.
func (m *Memory) Policy() spec.Policy { return m.kind }

package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Budget is the room that one call of a model has (reference memory.md 6). The
// zero Budget has no end.
type Budget struct {
	Model         string // what the provider calls the model; for errors and `qtype memory explain`
	ContextWindow int    // tokens that the model reads and writes in one call, 0 where unknown: no limit
	Answer        int    // tokens that the answer may take
	Tools         int    // tokens that the descriptions of tools take
	context       int    // tokens of the context that is never cut
}

// BudgetError says that not even the newest round fits a model's context window.
type BudgetError struct {
	Budget          // the room that there was
	Memory   string // the memory's id
	System   int    // tokens of the system message
	Context  int    // tokens of the context that is never cut
	Round    int    // tokens of the newest round
	Messages int    // its messages
}

// Error gives the numbers.
func (e *BudgetError) Error() string {
	parts := []string{fmt.Sprintf("the newest round (%s, %s tokens)", counted(e.Messages, "message"), thousands(e.Round))}
	for _, p := range []struct {
		what   string
		tokens int
	}{{"the system message", e.System}, {"the context that is never cut", e.Context}, {"the tools", e.Tools}, {"the answer", e.Answer}} {
		if p.tokens > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", p.what, thousands(p.tokens)))
		}
	}
	list := parts[0]
	if last := len(parts) - 1; last > 0 {
		list = strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	model := "the model"
	if e.Model != "" {
		model = "model " + e.Model
	}
	return fmt.Sprintf("memory %s: %s reads and writes %s tokens in one call, but %s need %s",
		e.Memory, model, thousands(e.ContextWindow), list, thousands(e.Round+e.System+e.Context+e.Tools+e.Answer))
}

// EmptyWindowError says that a policy's limit leaves nothing of what was just
// said, so that there is nothing to send (reference memory.md 3.1).
type EmptyWindowError struct {
	Memory string // the memory's id
	Used   int    // how much the newest message and the system message take
	Limit  int    // the limit
	Unit   Unit   // what both count
}

// Error gives the numbers.
func (e *EmptyWindowError) Error() string {
	return fmt.Sprintf("memory %s: nothing of what was said fits into the window: its limit is %s %s, the newest message and the system message take %s",
		e.Memory, thousands(e.Limit), e.Unit, thousands(e.Used))
}

// Fit is Window for a call that has a budget: where it does not suffice, the
// oldest rounds are left out of this call, whole; they stay in the window. A
// *BudgetError tells that not even the newest round fits, an *EmptyWindowError
// that the policy's limit leaves nothing to send.
func (t *Turn) Fit(b Budget) ([]chat.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errEnded
	}
	if err := t.refreshContext(); err != nil {
		return nil, err
	}
	v, sel, own := t.fitted()
	if sel.from == len(v.entries) && len(t.staged) > 0 && !isSystem(t.staged[len(t.staged)-1]) {
		return nil, t.emptyWindowError(v)
	}
	entries := sel.entries(v)
	for i := range sel.cut {
		entries[i].Tokens = Tokens(t.memory.counter, entries[i].Message) // they are copies
	}
	c := t.buildContext(v, entries)
	b.context = c.minTokens()
	left, err := t.evictForBudget(b, v, entries, max(own-sel.from, 0))
	if err != nil {
		return nil, err
	}
	t.recordCall(b, v, sel, entries[left:], left)
	if c != nil {
		return t.withContext(c, b, entries[left:])
	}
	w := t.memory.window(v, entries[left:])
	return w.Messages(), nil
}

// emptyWindowError is the error where the policy evicts all that was said.
func (t *Turn) emptyWindowError(v *view) error {
	newest := t.staged[len(t.staged)-1]
	err := &EmptyWindowError{Memory: t.memory.id}
	err.Used, err.Limit, err.Unit = t.policy.usage(1+v.systems(), newest.Tokens+v.systemTokens())
	return err
}

// evictForBudget tells how many of the oldest entries have no room in this call: whole
// rounds, and never the newest one; own is the index of the turn's first entry.
func (t *Turn) evictForBudget(b Budget, v *view, entries []*Entry, own int) (int, error) {
	if b.ContextWindow <= 0 {
		return 0, nil
	}
	room := b.ContextWindow - b.Answer - b.Tools - b.context - v.systemTokens()
	tokens := 0
	for _, e := range entries {
		tokens += e.Tokens
	}
	newest := 0
	if len(entries) > 0 {
		own = min(own, len(entries)-1)
		newest = newestRound(entries, own, lastUser(entries[:own+1]))
	}
	n := 0
	for tokens > room && n < newest {
		for first := true; n < newest && (first || entries[n].Message.Role != chat.User); first = false {
			tokens -= entries[n].Tokens
			n++
		}
	}
	if tokens > room {
		return 0, &BudgetError{Budget: b, Memory: t.memory.id, System: v.systemTokens(), Context: b.context, Round: tokens, Messages: len(entries) - n}
	}
	return n, nil
}

func lastUser(entries []*Entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Message.Role == chat.User {
			return i
		}
	}
	return -1
}

// callRecord is what the last call of a turn was sent.
type callRecord struct {
	first, last string // ids of the first and the last message that were sent
	from, to    int64  // their places, where they had one
	messages    int
	tokens      int
	call        Call
}

func (t *Turn) recordCall(b Budget, v *view, sel selection, sent []*Entry, left int) {
	calls := 1
	if t.call != nil {
		calls += t.call.call.Calls
	}
	n := &callRecord{messages: len(sent), call: Call{Model: b.Model, ContextWindow: b.ContextWindow, Answer: b.Answer,
		Tools: b.Tools, System: v.systemTokens(), Seen: t.base.state.Last, Left: left, Cut: sel.note, Calls: calls}}
	if len(sent) > 0 {
		first, last := sent[0], sent[len(sent)-1]
		n.first, n.from, n.last, n.to = first.Message.ID, first.Seq, last.Message.ID, last.Seq
	}
	for _, e := range sent {
		n.tokens += e.Tokens
	}
	t.call = n
}

// recordCall adds what the turn's last call was sent to the events of the change.
func (s *transition) recordCall(n *callRecord) {
	if n == nil {
		return
	}
	e := Event{Kind: EventSent, Turn: s.next.state.Turns, From: n.from, To: n.to, Messages: n.messages,
		Tokens: n.tokens, Call: &n.call, Time: s.next.state.LastSaid}
	for _, said := range s.change.Entries { // those that the turn itself said are numbered by now
		if said.Message.ID == n.first {
			e.From = said.Seq
		}
		if said.Message.ID == n.last {
			e.To = said.Seq
		}
	}
	s.change.Events = append([]Event{e}, s.change.Events...)
}

package memory

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Budget is the room of one call of a model. The zero Budget has no limit.
type Budget struct {
	Model         string // the provider's name of the model, for errors and `qtype memory explain`
	ContextWindow int    // tokens that the model reads and writes in one call; 0 if unknown, for no limit
	Answer        int    // tokens reserved for the answer
	Tools         int    // tokens of the descriptions of tools
}

// BudgetError reports that the newest round does not fit into a model's context window.
type BudgetError struct {
	Budget          // the room
	Memory   string // the memory's id
	System   int    // tokens of the system message
	Context  int    // tokens of the context that is never cut
	Round    int    // tokens of the newest round
	Messages int    // its messages
}

// Error names the sizes.
func (e *BudgetError) Error() string {
	parts := []string{fmt.Sprintf("the newest round (%s, %s tokens)", plural(e.Messages, "message"), thousands(e.Round))}
	for _, p := range []struct {
		name   string
		tokens int
	}{{"the system message", e.System}, {"the context that is never cut", e.Context}, {"the tools", e.Tools}, {"the answer", e.Answer}} {
		if p.tokens > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", p.name, thousands(p.tokens)))
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

// EmptyWindowError reports that the newest message does not fit into the
// window, so that there is nothing to send.
type EmptyWindowError struct {
	Memory string // the memory's id
	Used   int    // size of the newest message and the system message
	Limit  int    // the window's limit
	Unit   Unit   // unit of both
}

// Error names the sizes.
func (e *EmptyWindowError) Error() string {
	return fmt.Sprintf("memory %s: the newest message alone exceeds the window's limit of %s %s: with the system message it has %s",
		e.Memory, thousands(e.Limit), e.Unit, thousands(e.Used))
}

// Window returns what the model receives now: the window with the messages of
// this turn, fitted to the limits, and the system message in its place.
func (t *Turn) Window() ([]chat.Message, error) { return t.Fit(Budget{}) }

// Fit is Window for a call with a budget. If the room is not sufficient, the
// oldest rounds are left out of this call, whole; they stay in the window. It
// returns a *BudgetError if the newest round does not fit, an *EmptyWindowError
// if the policy's limit leaves nothing to send, and a *ContextError if the
// context does not fit into token_limit.
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
	if sel.left.size() == len(v.entries) && len(t.staged) > 0 && !isSystem(t.staged[len(t.staged)-1]) {
		return nil, t.emptyWindowError(v)
	}
	entries := sel.entries(v)
	for i := range sel.cut {
		entries[i].Tokens = tokensOf(t.memory.counter, &entries[i].Message) // they are copies
	}
	own -= sel.left.before(own)
	var c CallContext
	fixed := 0
	if t.context != nil {
		c = t.context.Assemble(v.systemEntry(), entries, false)
		fixed = c.MinTokens()
	}
	left, err := t.leaveOut(b, fixed, v, entries, own)
	if err != nil {
		return nil, err
	}
	t.noteCall(b, v, sel, entries[left:], left)
	if c != nil {
		return t.withContext(c, b, v, entries[left:])
	}
	w := t.memory.arrange(v, entries[left:])
	return w.Messages(), nil
}

// fitted returns the session as a Commit of the staged messages would leave it;
// own is the index of the turn's first message among the remaining entries.
func (t *Turn) fitted() (next *view, sel selection, own int) {
	v := *t.base // only this turn writes behind the end of its array
	v.step = t.step
	own = len(v.entries)
	for _, e := range withoutDuplicates(t.policy, t.base.system, t.staged) {
		if isSystem(e) {
			v.system, v.pending, v.tail = e, true, 0
		} else {
			v.append(e)
			v.tail++
		}
	}
	if n := len(v.entries); n > own {
		s := t.policy.evict(&v, own, userUpTo(&v, t.base, own)).withToolResults(v.entries)
		v.state.Open = t.policy.countsSystem() && hasOpenCalls(&v, s)
		v.remove(s)
		own -= s.before(own)
	}
	return &v, t.policy.selectForCall(&v), own
}

// emptyWindowError is the error if the policy evicts everything that was added.
func (t *Turn) emptyWindowError(v *view) error {
	newest := t.staged[len(t.staged)-1]
	err := &EmptyWindowError{Memory: t.memory.id}
	err.Used, err.Limit, err.Unit = t.policy.usage(1+v.systemCount(), newest.Tokens+v.systemTokens())
	return err
}

// leaveOut returns how many of the oldest entries have no room in this call:
// whole rounds, never the newest one. own is the index of the turn's first
// entry; fixed are the tokens of the context that is never cut.
func (t *Turn) leaveOut(b Budget, fixed int, v *view, entries []*Entry, own int) (int, error) {
	if b.ContextWindow <= 0 {
		return 0, nil
	}
	room := b.ContextWindow - b.Answer - b.Tools - fixed - v.systemTokens()
	tokens := sumTokens(entries)
	newest := 0
	if len(entries) > 0 {
		own = min(own, len(entries)-1)
		newest = newestRound(entries, own, lastUser(entries[:own+1]))
	}
	n := 0
	for tokens > room && n < newest {
		for first := true; n < newest && (first || !isUser(entries[n])); first = false {
			tokens -= entries[n].Tokens
			n++
		}
	}
	if tokens > room {
		return 0, &BudgetError{Budget: b, Memory: t.memory.id, System: v.systemTokens(), Context: fixed, Round: tokens, Messages: len(entries) - n}
	}
	return n, nil
}

func sumTokens(entries []*Entry) int {
	n := 0
	for _, e := range entries {
		n += e.Tokens
	}
	return n
}

// callRecord is what the last call of a turn sent.
type callRecord struct {
	first, last string // ids of the first and the last message
	from, to    int64  // their positions, 0 for messages of the turn
	messages    int
	tokens      int
	call        Call
}

func (t *Turn) noteCall(b Budget, v *view, sel selection, sent []*Entry, left int) {
	calls := 1
	if t.call != nil {
		calls += t.call.call.Calls
	}
	n := &callRecord{messages: len(sent), tokens: sumTokens(sent), call: Call{Model: b.Model, ContextWindow: b.ContextWindow, Answer: b.Answer,
		Tools: b.Tools, System: v.systemTokens(), Seen: t.base.state.Last, Left: left, Cut: sel.note, Calls: calls}}
	if len(sent) > 0 {
		first, last := sent[0], sent[len(sent)-1]
		n.first, n.from, n.last, n.to = first.Message.ID, first.Seq, last.Message.ID, last.Seq
	}
	t.call = n
}

// recordCall adds an event with the turn's last call.
func (t *transition) recordCall(n *callRecord) {
	if n == nil {
		return
	}
	e := Event{Kind: EventSent, Turn: t.next.state.Turns, From: n.from, To: n.to, Messages: n.messages,
		Tokens: n.tokens, Call: &n.call, Time: t.next.state.LastSaid}
	for _, added := range t.change.Entries { // the turn's messages have positions by now
		if added.Message.ID == n.first {
			e.From = added.Seq
		}
		if added.Message.ID == n.last {
			e.To = added.Seq
		}
	}
	t.change.Events = append([]Event{e}, t.change.Events...)
}

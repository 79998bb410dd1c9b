package memory

import (
	"errors"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Window returns what the model receives now: the window with the messages of
// this turn, fitted to the limits, and the system message in its place.
func (t *Turn) Window() ([]chat.Message, error) { return t.Fit(Budget{}) }

// Fit is Window for a call with a budget. If the room is not sufficient, the
// oldest rounds are left out of this call, whole; they stay in the window. It
// returns a *BudgetError if the newest round does not fit, an *EmptyWindowError if the
// policy's limit has no room for the newest message, a *TurnSizeError if it has none for
// the question together with the newest tool results, and a *ContextError if the context does
// not fit into token_limit.
func (t *Turn) Fit(b Budget) ([]chat.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errEnded
	}
	t.noteQuestion()
	b = t.corrections().Within(b)
	t.noteOthers(b, 0)
	if err := t.refreshContext(); err != nil {
		return nil, err
	}
	r, err := t.prepare(b, false)
	if err == nil && r.context != nil && t.noteOthers(b, r.context.Tokens()) && r.left > 0 {
		if err := t.refreshContext(); err != nil { // what leaves now is summarized
			return nil, err
		}
		r, err = t.prepare(b, false)
	}
	if err != nil || r.left > 0 { // short forms may be enough
		r, err = t.prepareShort(b, r, err)
	}
	if err != nil {
		return nil, err
	}
	sent, isFirst := r.sent(), t.call == nil
	t.noteCall(b, r, sent)
	var messages []chat.Message
	var report []store.ContextBlockReport
	if r.context != nil {
		if messages, report, err = t.withContext(r.context, b, r.view, sent); err != nil {
			return nil, err
		}
	} else {
		w := t.memory.arrange(r.view, sent)
		messages = asSent(w.Messages())
	}
	if r.repairable && r.view.HasToolUse() {
		messages, _ = chat.Balance(messages)
	}
	t.notePrefix(isFirst, messages, sent, report)
	return messages, nil
}

// asSent returns messages as models receive them.
func asSent(messages []chat.Message) []chat.Message {
	for i := range messages {
		messages[i] = messages[i].AsSent()
	}
	return messages
}

// fittedCall is what a call sends.
type fittedCall struct {
	view       *window.View
	selection  window.Selection
	entries    []*store.Entry
	left       int         // the number of first entries that have no room in the model's context window
	context    CallContext // nil without context
	changes    int         // see repairs
	repairable bool
}

// sent returns the entries that are sent: without the oldest ones, but with the pinned
// ones.
func (r *fittedCall) sent() []*store.Entry {
	pins := window.PinnedPositions(r.view)
	var kept []*store.Entry
	for _, e := range r.entries[:r.left] {
		if pins.Has(e.Seq) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return r.entries[r.left:]
	}
	return append(kept, r.entries[r.left:]...)
}

// prepare fits the window to the policy and to the budget; with short set, old messages have
// short forms although the policy has room for them.
func (t *Turn) prepare(b Budget, short bool) (*fittedCall, error) {
	v, sel, own := t.fitted()
	if c := v.Shortened(); short && c != v {
		v, sel = c, window.SelectExcept(t.policy, c, t.keptIn(c))
	}
	r := &fittedCall{view: v, selection: sel}
	if err := t.checkSent(v, sel); err != nil {
		return r, err
	}
	r.entries = sel.Entries(v)
	for i := range sel.Cut {
		r.entries[i].Tokens = window.TokensOf(t.memory.reader.Counter, &r.entries[i].Message) // they are copies
	}
	own -= sel.Left.Before(own)
	added := 0
	if r.repairable = true; v.HasToolUse() {
		r.changes, added, r.repairable = window.Repairs(t.memory.reader.Counter, r.entries, own)
	}
	fixed := 0
	if t.context != nil {
		r.context = t.context.Assemble(v.SystemEntry(), r.entries, false)
		fixed = r.context.MinTokens()
	}
	var err error
	r.left, err = t.leaveOut(b, fixed, added, v, r.entries, own)
	return r, err
}

// prepareShort is prepare with short forms for a call that has no room for all messages. It
// returns r and err, the result without them, if there are none.
func (t *Turn) prepareShort(b Budget, r *fittedCall, err error) (*fittedCall, error) {
	var over *BudgetError
	if err != nil && !errors.As(err, &over) || r.view.Shortened() == r.view {
		return r, err
	}
	return t.prepare(b, true)
}

// leaveOut returns how many of the oldest entries have no room in this call: whole rounds, never the newest
// one; pinned messages among them are sent. own is the index of the turn's first entry; fixed are the tokens
// of the context that is never cut, and added the tokens of results that older rounds lack.
func (t *Turn) leaveOut(b Budget, fixed, added int, v *window.View, entries []*store.Entry, own int) (int, error) {
	tokens := window.SumTokens(entries)
	known := t.corrections()
	bound := known.Bound(b.Model, t.memory.accepted.Most(b.Model))
	if b.ContextWindow <= 0 && t.most == 0 && bound == 0 {
		return 0, nil
	}
	room, most, newestRoom := math.MaxInt, math.MaxInt, math.MaxInt
	if others := b.Added() + fixed + v.SystemTokens(); b.ContextWindow > 0 {
		room, newestRoom = known.InputRoom(b)-others, known.MostRoom(b)-others
	}
	if bound > 0 {
		most = max(bound-b.Added()-v.SystemTokens(), 1)
	}
	if t.most > 0 {
		most = min(most, t.most)
	}
	newest := 0
	if len(entries) > 0 {
		own = min(own, len(entries)-1)
		newest = window.NewestRound(entries, own, window.LastUser(entries[:own+1]))
	}
	n, pins, pinned := 0, window.PinnedPositions(v), 0
	for (tokens > most || tokens+added+known.Uncounted(b, entries[n:], own-n) > room) && n < newest {
		for first := true; n < newest && (first || !window.IsUser(entries[n])); first = false {
			if pins.Has(entries[n].Seq) {
				pinned += entries[n].Tokens
			} else {
				tokens -= entries[n].Tokens
			}
			n++
		}
	}
	if tokens > newestRoom {
		factor, reserve := known.Of(b.Model)
		return 0, &BudgetError{Budget: b, Factor: factor, Template: reserve, Memory: t.memory.id, System: v.SystemTokens(), Context: fixed, Pinned: pinned, Round: tokens - pinned, Messages: len(entries) - n}
	}
	return n, nil
}

// omitted returns the messages that are left out after the first one that is sent.
func (t *Turn) omitted(sent []*store.Entry) []*store.Entry {
	all := slices.Concat(t.base.Entries, t.staged)
	all = slices.DeleteFunc(all, window.IsSystem)
	first := len(all) - len(sent)
	if len(sent) == 0 || all[first].Message.ID == sent[0].Message.ID {
		return nil
	}
	var out []*store.Entry
	next := 0
	for _, e := range all {
		switch {
		case next < len(sent) && e.Message.ID == sent[next].Message.ID:
			next++
		case next > 0:
			out = append(out, e)
		}
	}
	return out
}

func (t *Turn) noteCall(b Budget, r *fittedCall, sent []*store.Entry) {
	v := r.view
	calls := 1
	if t.call != nil {
		calls += t.call.Call.Calls
	}
	factor, _ := t.corrections().Of(b.Model)
	n := &change.CallRecord{Estimated: b.Margin > 1, Messages: len(sent), Tokens: window.SumTokens(sent), Call: store.Call{Model: b.Model, ContextWindow: b.ContextWindow, Answer: b.Answer,
		Tools: b.Tools, Passages: b.Passages, System: v.SystemTokens(), Factor: factor, Estimate: window.SumTokens(sent) + v.SystemTokens() + b.Added(), Seen: t.base.State.Last, Left: len(r.entries) - len(sent), Cut: r.selection.Note, Repairs: r.changes, Calls: calls}}
	if len(sent) > 0 {
		first, last := sent[0], sent[len(sent)-1]
		n.First, n.From, n.Last, n.To = first.Message.ID, first.Seq, last.Message.ID, last.Seq
	}
	if last := t.call; last != nil {
		n.Parts, n.Call.Prefix, n.Differs = last.Parts, last.Call.Prefix, last.Differs
	}
	n.Omitted = t.omitted(sent)
	for _, e := range sent {
		if slices.Contains(v.Short, e) {
			n.Shortened = append(n.Shortened, e)
		}
		if slices.ContainsFunc(v.Plain, func(p *store.Entry) bool { return p.Message.ID == e.Message.ID }) {
			n.Plain = append(n.Plain, e)
		}
	}
	t.call = n
}

// Report returns what Commit will fill. It must be called before.
func (t *Turn) Report() *TurnReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.report == nil {
		t.report = &TurnReport{}
	}
	return t.report
}

// Retrieved returns the positions of the earlier messages that the context of the
// last call has; nil if it has none.
func (t *Turn) Retrieved() (found []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == nil {
		return nil
	}
	for i := range t.call.Call.Context {
		found = append(found, t.call.Call.Context[i].Found...)
	}
	return found
}

// Repairs returns how many results of tool calls were missing in the last call and added,
// or had no call and were left out; see chat.Balance. isNew is false if an earlier turn of
// the session had as many.
func (t *Turn) Repairs() (changes int, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == nil {
		return 0, false
	}
	changes = t.call.Call.Repairs
	return changes, changes > 0 && changes != change.StoredRepairs(t.base.Values)
}

// noteOthers notes what a call needs besides messages, if that counts for Compaction.At, and
// reports whether it is more than in earlier calls of the turn: a window that a summary was
// made for does not grow again. A context window below token_limit counts as its share of
// the difference.
func (t *Turn) noteOthers(b Budget, context int) bool {
	p, ok := t.policy.(window.ContextPolicy)
	if !ok || t.memory.compactAt == 0 {
		return false
	}
	system := t.base.System
	if i := slices.IndexFunc(t.staged, window.IsSystem); i >= 0 {
		system = t.staged[i]
	}
	if system == nil {
		system = t.step
	}
	others := context
	if system != nil {
		others += system.Tokens
	}
	if b.ContextWindow > 0 {
		known := t.corrections()
		factor, reserve := known.Of(b.Model)
		entries := slices.Concat(t.base.Entries, t.staged)
		others += b.Added() + int(float64(b.Answer+reserve)/factor) + known.Uncounted(b, entries, len(t.base.Entries))
		if window := int(float64(b.ContextWindow) / factor); window < p.ContextLimit() {
			others += int(float64(p.ContextLimit()-window) * t.memory.compactAt)
		}
	}
	grown := others > t.others
	t.others = max(t.others, others)
	return grown
}

package memory

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/qtype-dev/qtype/chat"
)

// stepSystem names the value that holds the system message which a step brought
// along last: `qtype memory show` prints it, and it is no part of the history.
const stepSystem = "system"

// view is a session at one version. It never changes once it is published;
// its successor shares the entries' array and only writes behind its end.
type view struct {
	version int64
	state   State
	values  map[string][]byte
	system  *Entry   // the system message that holds, nil for none
	entries []*Entry // the window, oldest first
	user    int      // index of the last user message in entries, -1 for none
	bytes   int      // about what entries take in memory
}

func emptyView() *view { return &view{state: State{First: 1}, user: -1} }

// load reads a session's window, and no more of its history.
func (m *Memory) load(ctx context.Context, key Key) (*view, error) {
	for attempt := 0; ; attempt++ {
		head, err := m.store.Head(ctx, key)
		if err != nil {
			return nil, err
		}
		v, err := m.read(ctx, key, head)
		if err != nil {
			return nil, err
		}
		if len(v.entries) == head.State.InWindow && (v.system != nil) == (head.State.System != 0) {
			m.live.put(key, v)
			return v, nil
		}
		// Another process cleared the session in between, or the store broke its word.
		if attempt >= 10 {
			return nil, fmt.Errorf("memory %s, session %q: the store holds %d of the %d messages of the window",
				m.id, key.Session, len(v.entries), head.State.InWindow)
		}
	}
}

func (m *Memory) read(ctx context.Context, key Key, head Head) (*view, error) {
	v := emptyView()
	if head.Version == 0 {
		return v, nil
	}
	v.version, v.state, v.values = head.Version, head.State, head.Values
	if s := head.State.System; s != 0 {
		for e, err := range m.store.Entries(ctx, key, Query{From: s, To: s}) {
			if err != nil {
				return nil, err
			}
			v.system = e
		}
	}
	if head.State.First > head.State.Last {
		return v, nil
	}
	for e, err := range m.store.Entries(ctx, key, Query{From: head.State.First, To: head.State.Last, Live: true}) {
		if err != nil {
			return nil, err
		}
		if e.Message.Role != chat.System {
			v.push(e)
		}
	}
	return v, nil
}

// fresh is the session as the store has it now: from the live sessions, where
// nobody else has written since.
func (m *Memory) fresh(ctx context.Context, key Key) (*view, error) {
	v := m.live.get(key)
	if v == nil {
		return m.load(ctx, key)
	}
	head, err := m.store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	if head.Version != v.version {
		return m.load(ctx, key)
	}
	return v, nil
}

// push puts an entry at the window's end. The state is the caller's to keep in step.
func (v *view) push(e *Entry) {
	if e.Message.Role == chat.User {
		v.user = len(v.entries)
	}
	v.entries = append(v.entries, e)
	v.bytes += weight(e)
}

// weight is about how many bytes an entry takes: media are heavier than their tokens.
func weight(e *Entry) int {
	n := 512 // the structs around the texts
	for _, b := range e.Message.Blocks {
		n += len(b.Text) + len(b.Data)
	}
	for _, c := range e.Message.ToolCalls {
		n += len(c.Arguments)
	}
	return n
}

// said is the view after the entries were said in one turn, and the change that
// makes it so. Where each is set, every entry counts as an append of its own;
// else they are the newest round together.
func (m *Memory) said(base *view, entries []*Entry, each bool) *step {
	s := m.begin(base, entries)
	own := len(s.next.entries)
	for _, e := range s.change.Entries {
		if e.Message.Role == chat.System {
			s.next.system, s.next.state.System = e, e.Seq
			continue
		}
		s.next.push(e)
		s.next.state.Tokens += e.Tokens
		if each {
			s.evict(m.policy.Load(), len(s.next.entries)-1, s.next.user)
		}
	}
	if !each && own < len(s.next.entries) {
		s.evict(m.policy.Load(), own, userUpTo(s.next, base, own))
	}
	s.next.state.InWindow = len(s.next.entries)
	return s.done()
}

// userUpTo is the index of the last user message up to own, or -1.
func userUpTo(next, base *view, own int) int {
	if next.entries[own].Message.Role == chat.User {
		return own
	}
	return base.user
}

// replaced is the view after the window was replaced by the entries, and the change.
func (m *Memory) replaced(base *view, entries []*Entry) *step {
	s := m.begin(base, entries)
	if n := len(base.entries); n > 0 {
		s.change.Events = append(s.change.Events, Event{Kind: EventSet, Turn: s.next.state.Turns,
			From: base.entries[0].Seq, To: base.entries[n-1].Seq, Messages: n, Tokens: base.state.Tokens,
			Reason: "the window was set anew", Time: s.next.state.LastSaid})
	}
	s.next.entries, s.next.user, s.next.bytes, s.next.system = nil, -1, 0, nil
	s.next.state.Tokens, s.next.state.System, s.next.state.First = 0, 0, base.state.Last+1
	for _, e := range s.change.Entries {
		if e.Message.Role == chat.System {
			s.next.system, s.next.state.System = e, e.Seq
			continue
		}
		s.next.push(e)
		s.next.state.Tokens += e.Tokens
	}
	if n := len(s.next.entries); n > 0 {
		s.evict(m.policy.Load(), n-1, s.next.user)
	}
	s.next.state.InWindow = len(s.next.entries)
	return s.done()
}

// failed is the view after a turn failed: the history has what was said, the
// window has nothing of it.
func (m *Memory) failed(base *view, entries []*Entry, reason string) *step {
	s := m.begin(base, entries)
	e := Event{Kind: EventFailed, Turn: s.next.state.Turns, From: base.state.Last + 1, To: s.next.state.Last,
		Messages: len(entries), Reason: reason, Time: s.next.state.LastSaid}
	for _, entry := range s.change.Entries {
		entry.Status = Failed
		e.Tokens += entry.Tokens
	}
	s.change.Events = append(s.change.Events, e)
	return s.done()
}

// begin numbers and dates the entries of a new turn. Those that an earlier
// attempt handed to the store are the store's by now: copies are numbered.
func (m *Memory) begin(base *view, entries []*Entry) *step {
	next := *base
	now := m.now().UTC().Round(0).Truncate(time.Microsecond) // what every store can keep
	next.state.Turns++
	next.state.LastSaid = now
	if len(entries) > 0 && entries[0].Seq != 0 {
		entries = copies(entries)
	}
	for _, e := range entries {
		next.state.Last++
		e.Seq, e.Turn, e.Time, e.Status = next.state.Last, next.state.Turns, now, InWindow
	}
	return &step{next: &next, change: Change{Entries: entries}}
}

func copies(entries []*Entry) []*Entry {
	out := make([]*Entry, len(entries))
	for i, e := range entries {
		c := *e
		out[i] = &c
	}
	return out
}

// evict fits the window to the policy; own and user as for newestRound.
func (s *step) evict(p *flush, own, user int) {
	v := s.next
	if v.state.Tokens <= p.cap {
		return
	}
	n := p.fit(v.entries, v.state.Tokens, newestRound(v.entries, own, user))
	if n == 0 {
		return
	}
	went := 0
	for _, e := range v.entries[:n] {
		went += e.Tokens
		v.bytes -= weight(e)
	}
	s.change.Events = append(s.change.Events, Event{Kind: EventFlush, Turn: v.state.Turns,
		From: v.entries[0].Seq, To: v.entries[n-1].Seq, Messages: n, Tokens: went,
		Before: v.state.Tokens, Limit: p.cap, Reason: p.reason(v.state.Tokens, went, v.entries[n]), Time: v.state.LastSaid})
	v.entries = v.entries[n:]
	v.user = max(v.user-n, -1)
	v.state.Tokens -= went
	v.state.First = v.entries[0].Seq
	v.state.Flushes++
}

func (s *step) done() *step {
	s.change.State = s.next.state
	return s
}

// bring records the system message that a step brought along, where it is a new one.
func (s *step) bring(system string) {
	if system == "" || string(s.next.values[stepSystem]) == system {
		return
	}
	s.change.Values = map[string][]byte{stepSystem: []byte(system)}
	values := maps.Clone(s.next.values)
	if values == nil {
		values = map[string][]byte{}
	}
	values[stepSystem] = []byte(system)
	s.next.values = values
}

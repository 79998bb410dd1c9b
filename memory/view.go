package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// stepSystemValue names the value that holds the system message which a step brought
// along last: `qtype memory show` prints it, and it is no part of the history.
const stepSystemValue = "system"

// view is a session at one version. It never changes once it is published;
// its successor shares the entries' array and only writes behind its end.
type view struct {
	version int64
	state   State
	values  map[string][]byte
	system  *Entry   // the system message that holds, nil for none
	brought *Entry   // the system message that a step brought along, nil for none
	entries []*Entry // the window, oldest first; of a round_window all that a read may want
	begin   int64    // entries begin at this Seq
	tokens  int      // of all entries
	user    int      // index of the last user message in entries, -1 for none
	bytes   int      // about what entries take in memory

	unsaid bool // system was said in a turn that goes on, and stands before the last tail entries
	tail   int

	sized bool    // the policy counts characters: the following hold
	sizes []int32 // characters of each of the entries
	chars int     // their sum
	users int     // user messages in entries
}

func (m *Memory) emptyView() *view {
	return &view{state: State{First: 1}, begin: 1, user: -1, sized: m.kind == spec.PolicyRoundWindow}
}

// load reads a session's window, and no more of its history.
func (m *Memory) load(ctx context.Context, key Key) (*view, error) {
	for attempt := 0; ; attempt++ {
		head, err := m.store.Head(ctx, key)
		if err != nil {
			return nil, err
		}
		v, err := m.readHead(ctx, key, head)
		if err != nil {
			return nil, err
		}
		held := head.State.InWindow
		if head.State.Keep != 0 {
			held = head.State.Kept
		}
		if len(v.entries) == held && (v.system != nil) == (head.State.System != 0) {
			m.live.put(key, v)
			return v, nil
		}
		// Another process cleared the session in between, or the store broke its word.
		if attempt >= 10 {
			return nil, fmt.Errorf("memory %s, session %q: the store holds %d of the %d messages of the window",
				m.id, key.Session, len(v.entries), held)
		}
	}
}

func (m *Memory) readHead(ctx context.Context, key Key, head Head) (*view, error) {
	v := m.emptyView()
	if head.Version == 0 {
		return v, nil
	}
	v.version, v.state, v.values = head.Version, head.State, head.Values
	v.begin = head.State.First
	if head.State.Keep != 0 {
		v.begin = head.State.Keep
	}
	if text := head.Values[stepSystemValue]; len(text) > 0 {
		v.brought = m.systemOf(string(text))
	}
	if s := head.State.System; s != 0 {
		for e, err := range m.store.Entries(ctx, key, Query{From: s, To: s}) {
			if err != nil {
				return nil, err
			}
			v.system = e
		}
	}
	return v, m.readEntries(ctx, key, v)
}

// readEntries reads the entries from v.begin on.
func (m *Memory) readEntries(ctx context.Context, key Key, v *view) error {
	if v.begin > v.state.Last {
		return nil
	}
	for e, err := range m.store.Entries(ctx, key, Query{From: v.begin, To: v.state.Last, Live: true}) {
		if err != nil {
			return err
		}
		if err := m.checkDecrypted(key, e); err != nil {
			return err
		}
		if e.Message.Role != chat.System {
			v.appendEntry(e)
		}
	}
	return nil
}

// systemOf is a step's system message as an entry.
func (m *Memory) systemOf(text string) *Entry {
	msg := chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: text}}}
	return &Entry{Message: msg, Tokens: Tokens(m.counter, msg)}
}

// reload is the session as the store has it now: from the live sessions, where
// nobody else has written since.
func (m *Memory) reload(ctx context.Context, key Key) (*view, error) {
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

// appendEntry puts an entry at the window's end.
func (v *view) appendEntry(e *Entry) {
	if e.Message.Role == chat.User {
		v.user = len(v.entries)
		v.users++
	}
	if len(v.entries) == cap(v.entries) {
		v.entries = grow(v.entries)
	}
	v.entries = append(v.entries, e)
	v.tokens += e.Tokens
	v.bytes += sizeInBytes(e)
	if v.sized {
		n := characters(&e.Message)
		v.sizes = append(v.sizes, int32(min(n, 1<<30)))
		v.chars += n
	}
}

// grow is a copy with room for an eighth more. What left a window stays in
// its array until then: the less room, the sooner it is given back.
func grow(entries []*Entry) []*Entry {
	n := len(entries)
	return append(make([]*Entry, 0, n+n/8+2), entries...)
}

// holds tells whether the window has a message with this id.
func (v *view) holds(id string) bool {
	if v.system != nil && v.system.Message.ID == id {
		return true
	}
	for _, e := range slices.Backward(v.entries) {
		if e.Message.ID == id {
			return true
		}
	}
	return false
}

// isComplete tells whether the window is all that was ever said.
func (v *view) isComplete() bool {
	n := len(v.entries)
	if v.system != nil {
		n++
	}
	return v.state.Last == int64(n)
}

// drop takes the first n entries away.
func (v *view) drop(n int) {
	for i, e := range v.entries[:n] {
		v.tokens -= e.Tokens
		v.bytes -= sizeInBytes(e)
		if e.Message.Role == chat.User {
			v.users--
		}
		if v.sized {
			v.chars -= int(v.sizes[i])
		}
	}
	if n > 0 {
		v.begin = v.entries[n-1].Seq + 1 // what is said next may have its number already
	}
	v.entries = v.entries[n:]
	if v.sized {
		v.sizes = v.sizes[n:]
	}
	v.user = max(v.user-n, -1)
	if len(v.entries) > 0 {
		v.begin = v.entries[0].Seq
	}
}

// rounds is how many rounds the entries are: what stands before the first user
// message is one of its own (reference memory.md 5.5).
func (v *view) rounds() int {
	if len(v.entries) > 0 && v.entries[0].Message.Role != chat.User {
		return v.users + 1
	}
	return v.users
}

// sizeInBytes is about how many bytes an entry takes: media are heavier than their tokens.
func sizeInBytes(e *Entry) int {
	n := 512 // the structs around the texts
	for i := range e.Message.Blocks {
		n += len(e.Message.Blocks[i].Text) + len(e.Message.Blocks[i].Data)
	}
	for i := range e.Message.ToolCalls {
		n += len(e.Message.ToolCalls[i].Arguments)
	}
	return n
}

// saying is what a turn or an append brings to a session.
type saying struct {
	entries []*Entry
	each    bool   // every entry counts as an append of its own; else they are the newest round together
	brought *Entry // the step's system message, nil for none
}

// appendMessages is the view after something was said, and the change that makes it so;
// nil where nothing is new.
func (m *Memory) appendMessages(p evictionPolicy, base *view, what saying) *transition {
	entries := dropDuplicates(p, base.system, what.entries)
	if len(entries) == 0 {
		return nil
	}
	s := m.numberEntries(base, entries)
	s.next.brought = what.brought
	own := len(s.next.entries)
	for _, e := range s.change.Entries {
		if e.Message.Role == chat.System {
			s.next.system, s.next.state.System = e, e.Seq
		} else {
			s.next.appendEntry(e)
		}
		if what.each {
			s.evict(p, len(s.next.entries)-1, s.next.user, isSystem(e))
		}
	}
	if n := len(s.next.entries); !what.each && n > 0 {
		at := min(own, n-1)
		s.evict(p, at, lastUserBefore(s.next, base, at), own == n)
	}
	s.recordSystem(base, what.brought)
	return s.finish(p, base)
}

// dropDuplicates are the entries without those that say nothing new: where the system
// message counts, one that is equal to the one that holds (reference memory.md 3.3).
func dropDuplicates(p evictionPolicy, system *Entry, entries []*Entry) []*Entry {
	if !p.countsSystem() || !slices.ContainsFunc(entries, isSystem) {
		return entries
	}
	var out []*Entry
	for _, e := range entries {
		if isSystem(e) {
			if system != nil && sameSystem(&system.Message, &e.Message) {
				continue
			}
			system = e
		}
		out = append(out, e)
	}
	return out
}

func isSystem(e *Entry) bool { return e.Message.Role == chat.System }
func isUser(e *Entry) bool   { return e.Message.Role == chat.User }

// lastUserBefore is the index of the last user message up to own, or -1.
func lastUserBefore(next, base *view, own int) int {
	if next.entries[own].Message.Role == chat.User {
		return own
	}
	return base.user
}

// replaceWindow is the view after the window was replaced by the entries, and the change.
func (m *Memory) replaceWindow(p evictionPolicy, base *view, entries []*Entry) *transition {
	entries = dropDuplicates(p, nil, entries)
	s := m.numberEntries(base, entries)
	if n := len(base.entries); n > 0 {
		s.change.Events = append(s.change.Events, Event{Kind: EventSet, Turn: s.next.state.Turns,
			From: base.entries[0].Seq, To: base.entries[n-1].Seq, Messages: n, Tokens: base.tokens,
			Reason: "the window was set anew", Time: s.next.state.LastSaid})
	}
	empty := m.emptyView()
	empty.version, empty.state, empty.values, empty.brought = s.next.version, s.next.state, s.next.values, s.next.brought
	empty.begin = base.state.Last + 1
	empty.state.System, empty.state.First, empty.state.Floor, empty.state.Open = 0, empty.begin, empty.begin, false
	before := *empty
	s.next = empty
	if s.next.values[summaryValue] != nil {
		s.setValue(summaryValue, nil) // it is of messages that are no part of the conversation any more
	}
	for _, e := range s.change.Entries {
		if e.Message.Role == chat.System {
			s.next.system, s.next.state.System = e, e.Seq
		} else {
			s.next.appendEntry(e)
		}
	}
	if n := len(s.next.entries); n > 0 {
		s.evict(p, n-1, s.next.user, false)
	}
	return s.finish(p, &before)
}

// recordFailedTurn is the view after a turn failed: the history has what was said, the
// window has nothing of it.
func (m *Memory) recordFailedTurn(base *view, entries []*Entry, reason string) *transition {
	s := m.numberEntries(base, entries)
	e := Event{Kind: EventFailed, Turn: s.next.state.Turns, From: base.state.Last + 1, To: s.next.state.Last,
		Messages: len(entries), Reason: reason, Time: s.next.state.LastSaid}
	for _, entry := range s.change.Entries {
		entry.Status = Failed
		e.Tokens += entry.Tokens
	}
	s.change.Events = append(s.change.Events, e)
	s.change.State = s.next.state
	return s
}

// numberEntries numbers and dates the entries of a new turn. Those that an earlier
// attempt handed to the store are the store's by now: copies are numbered.
func (m *Memory) numberEntries(base *view, entries []*Entry) *transition {
	next := *base
	s := &transition{next: &next}
	now := m.moment()
	s.next.state.Turns++
	s.next.state.LastSaid = now
	if len(entries) > 0 && entries[0].Seq != 0 {
		entries = cloneEntries(entries)
	}
	for _, e := range entries {
		s.next.state.Last++
		e.Seq, e.Turn, e.Time, e.Status = s.next.state.Last, s.next.state.Turns, now, InWindow
	}
	s.change.Entries = entries
	return s
}

// moment is now, as every store can keep it.
func (m *Memory) moment() time.Time { return time.UnixMicro(m.now().UnixMicro()).UTC() }

func cloneEntries(entries []*Entry) []*Entry {
	out := make([]*Entry, len(entries))
	for i, e := range entries {
		c := *e
		out[i] = &c
	}
	return out
}

// evict fits the window to the policy; own and user as for policy.fit. A system
// message alone evicts only where it counts.
func (s *transition) evict(p evictionPolicy, own, user int, system bool) {
	v := s.next
	if len(v.entries) == 0 || system && !p.countsSystem() {
		return
	}
	n := p.evictCount(v, own, user)
	if n == 0 {
		v.state.Open = false // what came last was no result, and stays
		return
	}
	v.state.Open = p.countsSystem() && hasOpenCalls(v, n)
	if v.sized { // of rounds, done tells what left
		v.drop(n)
		return
	}
	s.change.Events = append(s.change.Events, Event{Kind: EventFlush, Turn: v.state.Turns,
		From: v.entries[0].Seq, To: v.entries[n-1].Seq, Messages: n, Time: v.state.LastSaid})
	e := &s.change.Events[len(s.change.Events)-1]
	e.Before, e.Limit, e.Unit = p.usage(v.size(p))
	before := v.tokens
	v.drop(n)
	e.Tokens = before - v.tokens
	p.describe(e, v.entries)
	v.state.Flushes++
}

// finish writes down where the window stands.
func (s *transition) finish(p evictionPolicy, base *view) *transition {
	v := s.next
	st := &v.state
	st.First, st.InWindow, st.Tokens = v.begin, len(v.entries), v.tokens
	if r, ok := p.(*rounds); ok {
		st.Keep, st.Kept = v.begin, len(v.entries)
		picked := r.selectForCall(v)
		if picked.from > 0 {
			st.First = v.entries[picked.from].Seq
			st.InWindow -= picked.from
			for _, e := range v.entries[:picked.from] {
				st.Tokens -= e.Tokens
			}
		}
		st.Used = picked.used
		if e := r.evictionEvent(s, base); e != nil {
			s.change.Events = append(s.change.Events, *e)
			st.Flushes++
		}
	}
	s.change.State = *st
	return s
}

// recordSystem records the system message that a step brought along, where it is a new one.
func (s *transition) recordSystem(base *view, brought *Entry) {
	if brought == nil {
		s.next.brought = base.brought // still the last one
		return
	}
	text := brought.Message.Text()
	if string(s.next.values[stepSystemValue]) != text {
		s.setValue(stepSystemValue, []byte(text))
	}
}

// setValue sets a named value of the session.
func (s *transition) setValue(name string, value []byte) {
	if s.change.Values == nil {
		s.change.Values = map[string][]byte{}
		s.next.values = maps.Clone(s.next.values)
	}
	if s.next.values == nil {
		s.next.values = map[string][]byte{}
	}
	s.change.Values[name], s.next.values[name] = value, value
}

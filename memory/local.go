package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Sessions of a store in this process are not looked up, read and written as
// those of other stores are, but changed where they stand, under their own
// mutex, as long as no turn goes on: what is said, by which policy it is fitted
// and what follows is one piece of code all the same (Memory.said).

// cache keeps the views of sessions that were used last.
type cache interface {
	get(key Key) *view // nil where there is none; nobody else changes it
	put(key Key, v *view)
	drop(key Key)
}

// local is the cache of a memory whose store is in this process: a session's
// view stands beside it there. Only windows are not cached: they are at hand.
type local struct {
	memory *Memory
	store  *inProcess
}

func (l *local) get(key Key) *view {
	s := l.store.session(key)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	if v := s.viewOf(l.memory); v != nil {
		own := *v // the original is changed where it stands
		return &own
	}
	return nil
}

func (l *local) put(key Key, v *view) {
	if l.store.windows {
		return
	}
	if s := l.store.session(key); s != nil {
		defer s.mu.Unlock()
		if s.head.Version == v.version {
			own := *v
			s.owner, s.view = l.memory, &own
		}
	}
}

func (l *local) drop(key Key) {
	if s := l.store.session(key); s != nil {
		defer s.mu.Unlock()
		s.owner, s.view = nil, nil
	}
}

// viewOf is the session's view where this memory knows it; nil otherwise.
func (s *stored) viewOf(m *Memory) *view {
	if s.owner != m || s.view.version != s.head.Version {
		return nil
	}
	return s.view
}

// errElsewhere says that a session cannot be used where it stands: it is not
// there yet, a turn goes on, or it needs what only the long way does.
var errElsewhere = errors.New("not here")

// here finds the session, locked, and the policy, where nothing is in the way;
// one that is not there is made if create is set.
func (s *Session) here(create bool) (*stored, policy, error) {
	m := s.memory
	if m.local == nil || m.context != nil {
		return nil, nil, errElsewhere
	}
	p, err := m.policyOf(s.id)
	if err != nil {
		return nil, nil, err
	}
	at := s.at
	if at != nil {
		at.mu.Lock()
		if at.gone {
			at.mu.Unlock()
			at = nil
		}
	}
	if at == nil {
		if at = m.local.session(m.key(s.id)); at == nil && create {
			at = m.local.adopt(m.key(s.id))
		}
		if at == nil {
			return nil, nil, errElsewhere
		}
		s.at = at
	}
	if m.ttl > 0 && m.expired(at.head.State) {
		at.mu.Unlock()
		return nil, nil, errElsewhere
	}
	return at, p, nil
}

// append says messages where the session stands.
func (s *Session) append(ctx context.Context, on *step, msgs []chat.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range msgs {
		if msgs[i].ID != "" && s.memory.local != nil && s.memory.local.windows {
			return errElsewhere
		}
		if err := check(msgs[i : i+1]); err != nil {
			return err
		}
	}
	at, p, err := s.here(true)
	if err != nil {
		return err
	}
	defer at.mu.Unlock()
	m := s.memory
	// Whoever begins a turn is counted before it looks at the session, so none begins unseen.
	if m.lanes.busy.Load() > 0 {
		return errElsewhere
	}
	if at.long == nil {
		return at.appendLines(m, p, on, msgs)
	}
	v := at.viewOf(m)
	if at.head.Version == 0 {
		v = m.emptyView()
		at.owner, at.view = m, v
	}
	if v == nil {
		return errElsewhere
	}
	if r, ok := p.(*rounds); ok && !r.enough(v) {
		return errElsewhere
	}
	at.long.take(m, on, msgs)
	if n := len(v.entries); n == cap(v.entries) {
		v.entries = slices.Grow(v.entries, n+room) // the history keeps them all: nothing stays longer for it
	}
	if m.said(p, v, saying{entries: on.few, each: true, brought: v.brought, on: on}) == nil {
		at.long.giveBack(on)
		return nil
	}
	on.change.Next = nextVersion(v.version)
	at.apply(on.change)
	on.own.version = on.change.Next
	*v = on.own
	return nil
}

// take makes on.few the entries of those messages that the history does not hold.
func (h *history) take(m *Memory, on *step, msgs []chat.Message) {
	free := h.slab.entries
	for i := range msgs {
		msg := msgs[i]
		switch {
		case msg.ID == "":
			msg.ID = h.slab.id()
		case h.holds(msg.ID) || slices.ContainsFunc(on.few, func(e *Entry) bool { return e.Message.ID == msg.ID }):
			continue
		}
		if len(msg.Blocks) == 1 && &msg.Blocks[0] == &on.text[0] {
			msg.Blocks = h.slab.text(on.text[0].Text)
		}
		e := h.slab.entry()
		m.write(e, msg)
		on.few = append(on.few, e)
	}
	on.free = free
}

// giveBack is for entries that say nothing new.
func (h *history) giveBack(on *step) {
	for _, e := range on.few {
		*e = Entry{}
	}
	if len(on.free) >= len(on.few) {
		h.slab.entries = on.free
	}
}

// appendLines is append where only windows are kept.
func (s *stored) appendLines(m *Memory, p policy, on *step, msgs []chat.Message) error {
	if len(msgs) == 1 && s.appendLine(m, p, on, &msgs[0]) {
		return nil
	}
	if !s.sketch(m, on) {
		return errElsewhere
	}
	for i := range msgs {
		if isSystemRole(msgs[i].Role) {
			return errElsewhere
		}
		on.rows = append(on.rows, Entry{Message: msgs[i]})
		e := &on.rows[len(on.rows)-1]
		if !isSound(&e.Message) {
			e.Message = sound(e.Message)
		}
		e.Tokens = tokensOf(m.counter, &e.Message)
		on.few = append(on.few, e)
	}
	m.said(p, &on.own, saying{entries: on.few, each: true, on: on})
	w := &s.window
	w.forget(on.change.State.First)
	for _, e := range on.few {
		if e.Seq < on.change.State.First {
			continue
		}
		if l, ok := plain(e); ok {
			w.add(l)
		} else {
			w.keep(clone(e, w.id(e.Seq)))
		}
	}
	s.head.Version, s.head.State = nextVersion(s.head.Version), on.change.State
	w.fitted = p
	return nil
}

// clone is an entry that outlives the step, with its id.
func clone(e *Entry, id string) *Entry {
	own := *e
	own.Message.ID, own.Message.Blocks = id, slices.Clone(e.Message.Blocks)
	return &own
}

func isSystemRole(r chat.Role) bool { return r == chat.System }

// sketch makes on.own the view of a session of which only the window is kept,
// with entries that hold no texts: no policy but round_window looks at those. It
// tells whether that will do.
func (s *stored) sketch(m *Memory, on *step) bool {
	if len(s.head.Values) > 0 || m.kind == spec.PolicyRoundWindow {
		return false
	}
	w := &s.window
	on.own = view{version: s.head.Version, state: s.head.State, system: w.system, user: -1}
	v := &on.own
	v.state.First = max(v.state.First, 1)
	v.begin = v.state.First
	on.rows = slices.Grow(on.rows[:0], w.n+room) // it must not move
	v.entries = slices.Grow(on.entries[:0], w.n+room)
	for i := range w.n {
		l := w.at(i)
		var e *Entry
		if l.isWhole() {
			e = w.whole[l.seq]
		} else {
			on.rows = on.rows[:len(on.rows)+1]
			e = &on.rows[len(on.rows)-1]
			e.Seq, e.Tokens, e.Message.Role = l.seq, l.tokens(), roleAt(l.role())
		}
		if e.Message.Role == chat.User {
			v.user = i
			v.users++
		}
		v.tokens += e.Tokens
		v.entries = append(v.entries, e)
	}
	on.entries = v.entries
	return true
}

// room is how many messages are said at once where the session stands, at most.
const room = 16

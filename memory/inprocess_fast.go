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

// colocatedViews is the cache of a memory whose store is in this process: a session's
// view stands beside it there. Only windows are not cached: they are at hand.
type colocatedViews struct {
	memory *Memory
	store  *inProcess
}

func (l *colocatedViews) get(key Key) *view {
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

func (l *colocatedViews) put(key Key, v *view) {
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

func (l *colocatedViews) drop(key Key) {
	if s := l.store.session(key); s != nil {
		defer s.mu.Unlock()
		s.owner, s.view = nil, nil
	}
}

// viewOf is the session's view where this memory knows it; nil otherwise.
func (s *sessionData) viewOf(m *Memory) *view {
	if s.owner != m || s.view.version != s.head.Version {
		return nil
	}
	return s.view
}

// errSlowPath says that a session cannot be used where it stands: it is not
// there yet, a turn goes on, or it needs what only the long way does.
var errSlowPath = errors.New("not here")

// lockLocal finds the session, locked, and the policy, where nothing is in the way;
// one that is not there is made if create is set.
func (s *Session) lockLocal(create bool) (*sessionData, evictionPolicy, error) {
	m := s.memory
	if m.local == nil || m.context != nil {
		return nil, nil, errSlowPath
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
			at = m.local.lockOrCreate(m.key(s.id))
		}
		if at == nil {
			return nil, nil, errSlowPath
		}
		s.at = at
	}
	if m.ttl > 0 && m.expired(at.head.State) {
		at.mu.Unlock()
		return nil, nil, errSlowPath
	}
	return at, p, nil
}

// append says messages where the session stands.
func (s *Session) append(ctx context.Context, on *transition, msgs []chat.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range msgs {
		if msgs[i].ID != "" && s.memory.local != nil && s.memory.local.windows {
			return errSlowPath
		}
		if err := checkMessage(msgs[i : i+1]); err != nil {
			return err
		}
	}
	at, p, err := s.lockLocal(true)
	if err != nil {
		return err
	}
	defer at.mu.Unlock()
	m := s.memory
	// Whoever begins a turn is counted before it looks at the session, so none begins unseen.
	if m.lanes.busy.Load() > 0 {
		return errSlowPath
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
		return errSlowPath
	}
	if r, ok := p.(*rounds); ok && !r.covers(v) {
		return errSlowPath
	}
	at.long.alloc(m, on, msgs)
	if n := len(v.entries); n == cap(v.entries) {
		v.entries = slices.Grow(v.entries, n+spareCapacity) // the history keeps them all: nothing stays longer for it
	}
	if m.appendMessages(p, v, saying{entries: on.few, each: true, brought: v.brought, on: on}) == nil {
		at.long.unalloc(on)
		return nil
	}
	on.change.Next = nextVersion(v.version)
	at.apply(on.change)
	on.own.version = on.change.Next
	*v = on.own
	return nil
}

// alloc makes on.few the entries of those messages that the history does not hold.
func (h *history) alloc(m *Memory, on *transition, msgs []chat.Message) {
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

// unalloc is for entries that say nothing new.
func (h *history) unalloc(on *transition) {
	for _, e := range on.few {
		*e = Entry{}
	}
	if len(on.free) >= len(on.few) {
		h.slab.entries = on.free
	}
}

// appendLines is append where only windows are kept.
func (s *sessionData) appendLines(m *Memory, p evictionPolicy, on *transition, msgs []chat.Message) error {
	if len(msgs) == 1 && s.appendLine(m, p, on, &msgs[0]) {
		return nil
	}
	if !s.skeletonView(m, on) {
		return errSlowPath
	}
	for i := range msgs {
		if isSystemRole(msgs[i].Role) {
			return errSlowPath
		}
		on.rows = append(on.rows, Entry{Message: msgs[i]})
		e := &on.rows[len(on.rows)-1]
		if !isValidUTF8(&e.Message) {
			e.Message = sanitizeUTF8(e.Message)
		}
		e.Tokens = tokensOf(m.counter, &e.Message)
		on.few = append(on.few, e)
	}
	m.appendMessages(p, &on.own, saying{entries: on.few, each: true, on: on})
	w := &s.window
	w.dropBefore(on.change.State.First)
	for _, e := range on.few {
		if e.Seq < on.change.State.First {
			continue
		}
		if l, ok := packEntry(e); ok {
			w.add(l)
		} else {
			w.pushEntry(clone(e, w.id(e.Seq)))
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

// skeletonView makes on.own the view of a session of which only the window is kept,
// with entries that hold no texts: no policy but round_window looks at those. It
// tells whether that will do.
func (s *sessionData) skeletonView(m *Memory, on *transition) bool {
	if len(s.head.Values) > 0 || m.kind == spec.PolicyRoundWindow {
		return false
	}
	w := &s.window
	on.own = view{version: s.head.Version, state: s.head.State, system: w.system, user: -1}
	v := &on.own
	v.state.First = max(v.state.First, 1)
	v.begin = v.state.First
	on.rows = slices.Grow(on.rows[:0], w.n+spareCapacity) // it must not move
	v.entries = slices.Grow(on.entries[:0], w.n+spareCapacity)
	for i := range w.n {
		l := w.at(i)
		var e *Entry
		if l.isEntry() {
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

// spareCapacity is how many messages are said at once where the session stands, at most.
const spareCapacity = 16

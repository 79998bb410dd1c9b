// Package inprocess keeps the sessions of memories in RAM. It is the store of tests, of
// conversations that need not outlive the process, and of the scratch memories of imports.
package inprocess

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/memory/store"
)

// New returns an empty store.
func New() *Store { return &Store{sessions: map[store.Key]*storedSession{}} }

// Store is a store.LocalStore. It loses its sessions when the process ends.
type Store struct {
	mu       sync.RWMutex // guards sessions; locked before the mutex of a session
	sessions map[store.Key]*storedSession
}

type storedSession struct {
	mu      sync.Mutex // guards the fields below
	deleted bool       // the session is no longer in Store.sessions
	head    store.Head
	entries []*store.Entry // the entry with Seq n is at index n-1
	events  eventLog
	ids     idIndex
}

// find returns the session locked, or nil if the store does not hold it.
func (p *Store) find(key store.Key) *storedSession {
	p.mu.RLock()
	s := p.sessions[key]
	p.mu.RUnlock()
	if s == nil {
		return nil
	}
	if !s.lock() {
		return nil
	}
	return s
}

// lock locks the session and reports true, or reports false if the store does not hold it.
func (s *storedSession) lock() bool {
	s.mu.Lock()
	if s.deleted || s.head.Version == 0 {
		s.mu.Unlock()
		return false
	}
	return true
}

// Version returns the session's version, 0 if the store does not hold it.
func (s *storedSession) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted {
		return 0
	}
	return s.head.Version
}

// delete marks the session, which is locked, as deleted, and frees its content:
// a memory may still know it.
func (s *storedSession) delete() {
	s.deleted = true
	s.head, s.entries, s.events, s.ids = store.Head{}, nil, eventLog{}, idIndex{}
}

// findOrCreate returns the session locked. A new session has version 0 and
// stays invisible to other callers until a change is applied.
func (p *Store) findOrCreate(key store.Key) *storedSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s == nil {
		s = &storedSession{}
		p.sessions[key] = s
	}
	s.mu.Lock()
	return s
}

// Head returns the head of a session.
func (p *Store) Head(ctx context.Context, key store.Key) (store.Head, error) {
	s := p.find(key)
	if s == nil {
		return store.Head{}, ctx.Err()
	}
	defer s.mu.Unlock()
	h := s.head
	h.Values = maps.Clone(h.Values) // changes modify the session's own
	return h, ctx.Err()
}

// Apply makes a change. It keeps none of its slices.
func (p *Store) Apply(ctx context.Context, key store.Key, c store.Change) error {
	_, err := p.ApplyLocal(ctx, key, nil, &c)
	return err
}

// ApplyLocal is Apply, and returns the session.
func (p *Store) ApplyLocal(ctx context.Context, key store.Key, known store.LocalSession, c *store.Change) (store.LocalSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, _ := known.(*storedSession)
	switch {
	case c.Version == 0:
		s = p.findOrCreate(key)
	case s == nil || !s.lock():
		if s = p.find(key); s == nil {
			return nil, store.ErrConflict
		}
	}
	defer s.mu.Unlock()
	if s.head.Version != c.Version {
		return nil, store.ErrConflict
	}
	if s.entries == nil {
		s.entries = make([]*store.Entry, 0, max(len(c.Entries), 8))
	}
	s.entries = append(s.entries, c.Entries...)
	for i := range c.Events {
		s.events.add(&c.Events[i])
	}
	s.head.Version, s.head.State = c.Next, c.State
	s.head.Values = merge(s.head.Values, c.Values)
	return s, nil
}

// merge sets values of a session, whose lock the caller holds; nil values remove names.
func merge(values, set map[string][]byte) map[string][]byte {
	if values == nil && len(set) > 0 {
		values = make(map[string][]byte, len(set))
	}
	for name, value := range set {
		if value == nil {
			delete(values, name)
		} else {
			values[name] = value
		}
	}
	return values
}

// Entries yields the entries that q selects. The session may change while they are read: it is
// locked for one entry at a time, so that a reader may write.
func (p *Store) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		if q.IDs != nil {
			for _, seq := range p.findIDs(key, q) {
				if !p.yield(ctx, key, seq, q.Live, yield) {
					return
				}
			}
			return
		}
		seq := max(q.From, 1)
		for (q.To == 0 || seq <= q.To) && p.yield(ctx, key, seq, q.Live, yield) {
			seq++
		}
	}
}

// yield passes on the entry at a position, unless it has failed and live is set. It reports
// whether the range goes on.
func (p *Store) yield(ctx context.Context, key store.Key, seq int64, live bool, yield func(*store.Entry, error) bool) bool {
	e := p.entry(key, seq)
	switch {
	case e == nil:
		return false
	case ctx.Err() != nil:
		yield(nil, ctx.Err())
		return false
	case live && e.Status == store.Failed:
		return true
	}
	return yield(e, nil)
}

// findIDs returns the positions of the messages with q.IDs, ascending.
func (p *Store) findIDs(key store.Key, q store.Query) []int64 {
	s := p.find(key)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	var found []int64
	keep := func(seq int64) {
		if seq >= q.From && (q.To == 0 || seq <= q.To) {
			found = append(found, seq)
		}
	}
	if q.Live {
		for _, id := range q.IDs {
			if seq := s.ids.find(s.entries, id); seq != 0 {
				keep(seq)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	for _, e := range s.entries {
		if slices.Contains(q.IDs, e.Message.ID) {
			keep(e.Seq)
		}
	}
	return found
}

// entry returns the entry with this Seq, or nil if there is none.
func (p *Store) entry(key store.Key, seq int64) *store.Entry {
	s := p.find(key)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	if seq < 1 || seq > int64(len(s.entries)) {
		return nil
	}
	return s.entries[seq-1]
}

// Events yields the events that the session has now.
func (p *Store) Events(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		var log eventLog
		if s := p.find(key); s != nil {
			log = s.events // only appended to
			s.mu.Unlock()
		}
		if err := ctx.Err(); err != nil {
			yield(store.Event{}, err)
			return
		}
		for e := range log.all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Delete removes a session.
func (p *Store) Delete(ctx context.Context, key store.Key) error {
	return p.delete(ctx, key, func(*storedSession) error { return nil })
}

// Remove deletes a session that has the given version.
func (p *Store) Remove(ctx context.Context, key store.Key, version int64) error {
	return p.delete(ctx, key, func(s *storedSession) error {
		if s == nil || version == 0 || s.head.Version != version {
			return store.ErrConflict
		}
		return nil
	})
}

// delete deletes a session if check, which receives nil for an unknown session, allows it.
func (p *Store) delete(ctx context.Context, key store.Key, check func(*storedSession) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s == nil {
		return check(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := check(s); err != nil {
		return err
	}
	s.delete()
	delete(p.sessions, key)
	return nil
}

// Sessions yields the sessions that a memory has now.
func (p *Store) Sessions(ctx context.Context, memory string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		var all []store.SessionHead
		p.mu.RLock()
		for key, s := range p.sessions {
			if key.Memory == memory {
				s.mu.Lock()
				if s.head.Version != 0 {
					all = append(all, store.SessionHead{Session: key.Session, Head: store.Head{Version: s.head.Version, State: s.head.State}})
				}
				s.mu.Unlock()
			}
		}
		p.mu.RUnlock()
		slices.SortFunc(all, func(a, b store.SessionHead) int { return cmp.Compare(a.Session, b.Session) })
		if err := ctx.Err(); err != nil {
			yield(store.SessionHead{}, err)
			return
		}
		for _, l := range all {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// ListSessions looks at all sessions of the store: they are in RAM.
func (p *Store) ListSessions(ctx context.Context, memory string, q store.SessionQuery) ([]store.SessionHead, error) {
	return q.Page(p.Sessions(ctx, memory))
}

// errNoSuchRecord is the cause of an error about a record that a Replacement names.
func errNoSuchRecord(kind string, n int64) error {
	return fmt.Errorf("%s %d to be replaced does not exist", kind, n)
}

// Replace replaces records. Readers have the old or the new ones.
func (p *Store) Replace(ctx context.Context, key store.Key, r store.Replacement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.find(key)
	if s == nil {
		return store.ErrConflict
	}
	defer s.mu.Unlock()
	if s.head.Version != r.Version {
		return store.ErrConflict
	}
	var events eventLog
	n := int64(0)
	for e := range s.events.all {
		if replaced, ok := r.Events[n]; ok {
			e = replaced
		}
		events.add(&e)
		n++
	}
	for i := range r.Events {
		if i < 0 || i >= n {
			return errNoSuchRecord("event", i)
		}
	}
	for seq, m := range r.Messages {
		if seq < 1 || seq > int64(len(s.entries)) || s.entries[seq-1].Message.ID != m.ID {
			return errNoSuchRecord("message", seq)
		}
	}
	for seq, m := range r.Messages {
		e := *s.entries[seq-1]
		e.Message = m
		s.entries[seq-1] = &e
	}
	s.events, s.head.Version, s.head.Values = events, r.Next, merge(s.head.Values, r.Values)
	return nil
}

// Close discards all sessions.
func (p *Store) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		s.mu.Lock()
		s.delete()
		s.mu.Unlock()
	}
	clear(p.sessions)
	return nil
}

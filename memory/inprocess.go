package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// NewInProcess returns a store that keeps everything in RAM and loses it when
// the process ends.
func NewInProcess() Store { return &inProcess{sessions: map[Key]*storedSession{}} }

type inProcess struct {
	mu       sync.RWMutex // guards sessions; locked before the mutex of a session
	sessions map[Key]*storedSession
}

// maxUnindexed is the number of entries of a session that is searched without an index: most
// sessions of many are short, and a map takes more than their ids.
const maxUnindexed = 32

type storedSession struct {
	mu      sync.Mutex // guards the fields below
	deleted bool       // the session is no longer in inProcess.sessions
	head    Head
	entries []*Entry // the entry with Seq n is at index n-1
	events  eventLog

	byID    map[string]int64 // Seq of live entries by message id, up to indexed; built on first use
	indexed int
}

// find returns the session locked, or nil if the store does not hold it.
func (p *inProcess) find(key Key) *storedSession {
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

// version returns the session's version, 0 if the store does not hold it.
func (s *storedSession) version() int64 {
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
	s.head, s.entries, s.events, s.byID, s.indexed = Head{}, nil, eventLog{}, nil, 0
}

// findOrCreate returns the session locked. A new session has version 0 and
// stays invisible to other callers until a change is applied.
func (p *inProcess) findOrCreate(key Key) *storedSession {
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

func (p *inProcess) Head(ctx context.Context, key Key) (Head, error) {
	s := p.find(key)
	if s == nil {
		return Head{}, ctx.Err()
	}
	defer s.mu.Unlock()
	return s.head, ctx.Err()
}

// Apply makes a change. It keeps none of its slices.
func (p *inProcess) Apply(ctx context.Context, key Key, c Change) error {
	_, err := p.apply(ctx, key, nil, &c)
	return err
}

// apply is Apply, and returns the session. known is the session as an earlier call
// returned it, nil to look it up.
func (p *inProcess) apply(ctx context.Context, key Key, known *storedSession, c *Change) (*storedSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := known
	switch {
	case c.Version == 0:
		s = p.findOrCreate(key)
	case s == nil || !s.lock():
		if s = p.find(key); s == nil {
			return nil, ErrConflict
		}
	}
	defer s.mu.Unlock()
	if s.head.Version != c.Version {
		return nil, ErrConflict
	}
	if s.entries == nil {
		s.entries = make([]*Entry, 0, max(len(c.Entries), 8))
	}
	s.entries = append(s.entries, c.Entries...)
	for i := range c.Events {
		s.events.add(&c.Events[i])
	}
	s.head.Version, s.head.State = c.Next, c.State
	s.head.Values = merge(s.head.Values, c.Values)
	return s, nil
}

// merge returns old with the values of set; nil values remove names. It does not modify old.
func merge(old, set map[string][]byte) map[string][]byte {
	if len(set) == 0 {
		return old
	}
	out := maps.Clone(old)
	if out == nil {
		out = map[string][]byte{}
	}
	for name, value := range set {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = value
		}
	}
	return out
}

func (p *inProcess) Entries(ctx context.Context, key Key, q Query) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		next := p.cursor(key, q)
		for e := next(); e != nil; e = next() {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if q.Live && e.Status == Failed {
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// cursor returns a function that returns the entries of q one by one, then nil.
// It locks the session for one entry at a time, so that a reader may write.
func (p *inProcess) cursor(key Key, q Query) func() *Entry {
	if q.IDs != nil {
		found := p.findIDs(key, q)
		return func() *Entry {
			if len(found) == 0 {
				return nil
			}
			e := p.entry(key, found[0])
			found = found[1:]
			return e
		}
	}
	seq := max(q.From, 1)
	return func() *Entry {
		if q.To != 0 && seq > q.To {
			return nil
		}
		e := p.entry(key, seq)
		seq++
		return e
	}
}

// findIDs returns the positions of the messages with q.IDs, ascending.
func (p *inProcess) findIDs(key Key, q Query) []int64 {
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
			if seq := s.live(id); seq != 0 {
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

// live returns the position of the live entry with a message id, 0 for none.
func (s *storedSession) live(id string) int64 {
	if s.byID == nil && len(s.entries) <= maxUnindexed {
		for _, e := range slices.Backward(s.entries) {
			if e.Status != Failed && e.Message.ID == id {
				return e.Seq
			}
		}
		return 0
	}
	s.index()
	return s.byID[id]
}

// index adds the entries to byID that were added since the last call.
func (s *storedSession) index() {
	if s.byID == nil {
		s.byID = map[string]int64{}
	}
	for _, e := range s.entries[s.indexed:] {
		if e.Status != Failed {
			s.byID[e.Message.ID] = e.Seq
		}
	}
	s.indexed = len(s.entries)
}

// entry returns the entry with this Seq, or nil if there is none.
func (p *inProcess) entry(key Key, seq int64) *Entry {
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

func (p *inProcess) Events(ctx context.Context, key Key) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var log eventLog
		if s := p.find(key); s != nil {
			log = s.events // only appended to
			s.mu.Unlock()
		}
		if err := ctx.Err(); err != nil {
			yield(Event{}, err)
			return
		}
		for e := range log.all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *inProcess) Delete(ctx context.Context, key Key) error {
	return p.delete(ctx, key, func(*storedSession) error { return nil })
}

// Remove deletes a session that has the given version.
func (p *inProcess) Remove(ctx context.Context, key Key, version int64) error {
	return p.delete(ctx, key, func(s *storedSession) error {
		if s == nil || version == 0 || s.head.Version != version {
			return ErrConflict
		}
		return nil
	})
}

// delete deletes a session if check, which receives nil for an unknown session, allows it.
func (p *inProcess) delete(ctx context.Context, key Key, check func(*storedSession) error) error {
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

func (p *inProcess) Sessions(ctx context.Context, memory string) iter.Seq2[SessionHead, error] {
	return func(yield func(SessionHead, error) bool) {
		var all []SessionHead
		p.mu.RLock()
		for key, s := range p.sessions {
			if key.Memory == memory {
				s.mu.Lock()
				if s.head.Version != 0 {
					all = append(all, SessionHead{Session: key.Session, Head: Head{Version: s.head.Version, State: s.head.State}})
				}
				s.mu.Unlock()
			}
		}
		p.mu.RUnlock()
		slices.SortFunc(all, func(a, b SessionHead) int { return cmp.Compare(a.Session, b.Session) })
		if err := ctx.Err(); err != nil {
			yield(SessionHead{}, err)
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
func (p *inProcess) ListSessions(ctx context.Context, memory string, q SessionQuery) ([]SessionHead, error) {
	return q.page(p.Sessions(ctx, memory))
}

// Close discards all sessions.
func (p *inProcess) Close() error {
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

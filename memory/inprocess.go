package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// NewInProcess is a store that lives as long as the process.
func NewInProcess() Store { return &inProcess{} }

// NewInProcessWithoutHistory is NewInProcess without history: what leaves a window is
// forgotten at once, and so are events. It is for many short sessions that
// nobody will look back at; a message that left can be said again.
func NewInProcessWithoutHistory() Store { return &inProcess{windows: true} }

type inProcess struct {
	windows  bool         // keep nothing but windows
	mu       sync.RWMutex // guards sessions
	sessions map[Key]*sessionData
}

// sessionData is one session. Who holds it after it was deleted finds it gone. Its
// mutex is taken after that of the store, where both are.
type sessionData struct {
	mu     sync.Mutex // guards what follows
	gone   bool
	long   *history   // the history; nil where only windows are kept
	window ringWindow // the window; empty where the history is kept
	head   Head

	owner *Memory // who knows view, which is the session at some version; nil for nobody
	view  *view
}

// history grows in pieces, so that an append never copies what is there.
type history struct {
	pieces [][]*Entry // of chunkLen each, the last one shorter
	events packedEvents
	slab   entryArena // what is said where the session stands

	byID    map[string]int64 // Seq of the entries that did not fail, up to indexed
	indexed int64
}

const chunkLen = 256

// appendPiece adds to the last piece, or begins one. The first piece grows, for most
// sessions are short; the others have their length from the beginning.
func appendPiece[T any](pieces [][]T, one T) [][]T {
	last := len(pieces) - 1
	switch {
	case last < 0:
		pieces = append(pieces, nil)
		last++
	case len(pieces[last]) == chunkLen:
		pieces = append(pieces, make([]T, 0, chunkLen))
		last++
	}
	pieces[last] = append(pieces[last], one)
	return pieces
}

// index notes where the messages stand that were said since it was called last.
// Appends of messages without ids never need it.
func (h *history) index() {
	if h.byID == nil {
		h.byID = map[string]int64{}
	}
	for e := h.entry(h.indexed + 1); e != nil; e = h.entry(h.indexed + 1) {
		if e.Status != Failed {
			h.byID[e.Message.ID] = e.Seq
		}
		h.indexed = e.Seq
	}
}

// holds tells whether a message with this id was said in a turn that did not fail.
func (h *history) holds(id string) bool {
	h.index()
	_, held := h.byID[id]
	return held
}

// entry is the one with this Seq, nil where there is none.
func (h *history) entry(seq int64) *Entry {
	i := seq - 1
	if i < 0 || i/chunkLen >= int64(len(h.pieces)) {
		return nil
	}
	piece := h.pieces[i/chunkLen]
	if i%chunkLen >= int64(len(piece)) {
		return nil
	}
	return piece[i%chunkLen]
}

// after is the first entry with this Seq or a later one, nil where there is none.
func (s *sessionData) after(seq int64) *Entry {
	if s.long != nil {
		return s.long.entry(seq)
	}
	return s.window.after(seq)
}

// session is the one with this key, locked; nil where there is none.
func (p *inProcess) session(key Key) *sessionData {
	p.mu.RLock()
	s := p.sessions[key]
	p.mu.RUnlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.gone { // deleted in this very moment
		s.mu.Unlock()
		return nil
	}
	return s
}

func (p *inProcess) Head(ctx context.Context, key Key) (Head, error) {
	s := p.session(key)
	if s == nil {
		return Head{}, ctx.Err()
	}
	defer s.mu.Unlock()
	return s.head, ctx.Err()
}

func (p *inProcess) Apply(ctx context.Context, key Key, c Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Version == 0 {
		return p.create(key, c)
	}
	s := p.session(key)
	if s == nil {
		return ErrConflict
	}
	defer s.mu.Unlock()
	if s.head.Version != c.Version {
		return ErrConflict
	}
	s.apply(c)
	return nil
}

// create makes the first change of a session.
func (p *inProcess) create(key Key, c Change) error {
	s := p.lockOrCreate(key)
	defer s.mu.Unlock()
	if s.head.Version != 0 {
		return ErrConflict
	}
	s.apply(c)
	return nil
}

// lockOrCreate is the session with this key, locked; one that is not there is made. As
// long as it has no version it is not there for others.
func (p *inProcess) lockOrCreate(key Key) *sessionData {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s == nil {
		s = &sessionData{}
		if p.windows {
			s.window.salt = rand.Uint64()
		} else {
			s.long = &history{}
		}
		if p.sessions == nil {
			p.sessions = map[Key]*sessionData{}
		}
		p.sessions[key] = s
	}
	s.mu.Lock()
	return s
}

// apply changes the session, which nobody else sees.
func (s *sessionData) apply(c Change) {
	if s.long == nil {
		s.window.apply(c)
	} else {
		for _, e := range c.Entries {
			s.long.pieces = appendPiece(s.long.pieces, e)
		}
		for i := range c.Events {
			s.long.events.add(&c.Events[i])
		}
	}
	s.head.Version, s.head.State = c.Next, c.State
	s.head.Values = merge(s.head.Values, c.Values)
}

// merge is the old values with the new ones in their place; old is left as it is.
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
		next := p.seqs(key, q)
		for last := int64(0); ; {
			e := p.entry(key, next(last))
			if e != nil {
				last = e.Seq
			}
			if e == nil || q.To != 0 && e.Seq > q.To {
				return
			}
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

// seqs gives the next place to look at after the last one that was found: up
// from q.From, or through the places of q.IDs.
func (p *inProcess) seqs(key Key, q Query) func(last int64) int64 {
	if q.IDs == nil {
		return func(last int64) int64 { return max(q.From, last+1) }
	}
	found := p.find(key, q)
	return func(int64) int64 {
		if len(found) == 0 {
			return math.MaxInt64 // there is none
		}
		seq := found[0]
		found = found[1:]
		return seq
	}
}

// find is where the messages with q.IDs stand. Failed ones are looked for only
// where q wants them, entry by entry: nobody needs that often.
func (p *inProcess) find(key Key, q Query) []int64 {
	s := p.session(key)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	var found []int64
	if q.Live && s.long != nil {
		s.long.index()
		for _, id := range q.IDs {
			if seq, ok := s.long.byID[id]; ok && seq >= q.From {
				found = append(found, seq)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	for seq := max(q.From, 1); ; seq++ {
		e := s.after(seq)
		if e == nil {
			return found
		}
		seq = e.Seq
		if slices.Contains(q.IDs, e.Message.ID) {
			found = append(found, seq)
		}
	}
}

// entry is the session's entry with this Seq or the next one that there is.
func (p *inProcess) entry(key Key, seq int64) *Entry {
	s := p.session(key)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	return s.after(seq)
}

func (p *inProcess) Events(ctx context.Context, key Key) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var events packedEvents
		if s := p.session(key); s != nil {
			if s.long != nil {
				events = s.long.events.snapshot()
			}
			s.mu.Unlock()
		}
		if err := ctx.Err(); err != nil {
			yield(Event{}, err)
			return
		}
		for _, some := range events.short {
			for i := range some {
				if !yield(events.event(&some[i]), nil) {
					return
				}
			}
		}
	}
}

func (p *inProcess) Delete(ctx context.Context, key Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[key]; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gone = true
		delete(p.sessions, key)
	}
	return nil
}

// Remove is Delete for a session that still has the version.
func (p *inProcess) Remove(ctx context.Context, key Key, version int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s == nil {
		return ErrConflict
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == 0 || s.head.Version != version {
		return ErrConflict
	}
	s.gone = true
	delete(p.sessions, key)
	return nil
}

func (p *inProcess) Sessions(ctx context.Context, memory string) iter.Seq2[SessionHead, error] {
	return func(yield func(SessionHead, error) bool) {
		p.mu.RLock()
		var all []SessionHead
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

// Close forgets everything.
func (p *inProcess) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		s.mu.Lock()
		s.gone = true
		s.mu.Unlock()
	}
	p.sessions = nil
	return nil
}

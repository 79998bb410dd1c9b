package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// NewInProcess is a store that lives as long as the process.
func NewInProcess() Store { return &inProcess{} }

type inProcess struct {
	mu       sync.RWMutex
	sessions map[Key]*stored
}

// stored is one session. Its history grows in pieces, so that an append never
// copies what is there.
type stored struct {
	head   Head
	pieces [][]*Entry       // of pieceLen each, the last one shorter
	byID   map[string]int64 // Seq of the entries that did not fail
	events []Event
}

const pieceLen = 256

func (s *stored) add(e *Entry) {
	last := len(s.pieces) - 1
	if last < 0 || len(s.pieces[last]) == pieceLen {
		s.pieces = append(s.pieces, nil)
		last++
	}
	s.pieces[last] = append(s.pieces[last], e)
	if e.Status != Failed {
		s.byID[e.Message.ID] = e.Seq
	}
}

// entry is the one with this Seq, nil where there is none.
func (s *stored) entry(seq int64) *Entry {
	i := seq - 1
	if i < 0 || i/pieceLen >= int64(len(s.pieces)) {
		return nil
	}
	piece := s.pieces[i/pieceLen]
	if i%pieceLen >= int64(len(piece)) {
		return nil
	}
	return piece[i%pieceLen]
}

func (p *inProcess) Head(ctx context.Context, key Key) (Head, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if s := p.sessions[key]; s != nil {
		return s.head, ctx.Err()
	}
	return Head{}, ctx.Err()
}

func (p *inProcess) Apply(ctx context.Context, key Key, c Change) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.sessions[key]
	switch {
	case s == nil && c.Version != 0, s != nil && s.head.Version != c.Version:
		return ErrConflict
	case s == nil:
		s = &stored{byID: map[string]int64{}}
		if p.sessions == nil {
			p.sessions = map[Key]*stored{}
		}
		p.sessions[key] = s
	}
	for _, e := range c.Entries {
		s.add(e)
	}
	s.events = append(s.events, c.Events...)
	s.head.Version, s.head.State = c.Next, c.State
	s.head.Values = merge(s.head.Values, c.Values)
	return nil
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
		for {
			e := p.entry(key, next())
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

// seqs counts up from q.From, or through the places of q.IDs.
func (p *inProcess) seqs(key Key, q Query) func() int64 {
	seq := max(q.From, 1) - 1
	if q.IDs == nil {
		return func() int64 { seq++; return seq }
	}
	found := p.find(key, q)
	return func() int64 {
		if len(found) == 0 {
			return 0
		}
		seq, found = found[0], found[1:]
		return seq
	}
}

// find is where the messages with q.IDs stand. Failed ones are looked for only
// where q wants them, entry by entry: nobody needs that often.
func (p *inProcess) find(key Key, q Query) []int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s := p.sessions[key]
	if s == nil {
		return nil
	}
	var found []int64
	if q.Live {
		for _, id := range q.IDs {
			if seq, ok := s.byID[id]; ok && seq >= q.From {
				found = append(found, seq)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	for seq := max(q.From, 1); ; seq++ {
		e := s.entry(seq)
		if e == nil {
			return found
		}
		if slices.Contains(q.IDs, e.Message.ID) {
			found = append(found, seq)
		}
	}
}

func (p *inProcess) entry(key Key, seq int64) *Entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if s := p.sessions[key]; s != nil {
		return s.entry(seq)
	}
	return nil
}

func (p *inProcess) Events(ctx context.Context, key Key) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p.mu.RLock()
		var events []Event
		if s := p.sessions[key]; s != nil {
			events = s.events // appended to behind its end only
		}
		p.mu.RUnlock()
		if err := ctx.Err(); err != nil {
			yield(Event{}, err)
			return
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *inProcess) Delete(ctx context.Context, key Key) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	delete(p.sessions, key)
	return nil
}

// Remove is Delete for a session that still has the version.
func (p *inProcess) Remove(ctx context.Context, key Key, version int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := p.sessions[key]; s == nil || s.head.Version != version {
		return ErrConflict
	}
	delete(p.sessions, key)
	return nil
}

func (p *inProcess) Sessions(ctx context.Context, memory string) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		p.mu.RLock()
		var all []Listed
		for key, s := range p.sessions {
			if key.Memory == memory {
				all = append(all, Listed{Session: key.Session, Head: Head{Version: s.head.Version, State: s.head.State}})
			}
		}
		p.mu.RUnlock()
		slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.Session, b.Session) })
		if err := ctx.Err(); err != nil {
			yield(Listed{}, err)
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
	p.sessions = nil
	return nil
}

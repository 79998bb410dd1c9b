package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
)

// NewInProcess is a store that lives as long as the process.
func NewInProcess() Store { return &inProcess{} }

// NewInProcessWindows is NewInProcess without history: what leaves a window is
// forgotten at once, and so are events. It is for many short sessions that
// nobody will look back at; a message that left can be said again.
func NewInProcessWindows() Store { return &inProcess{windows: true} }

type inProcess struct {
	windows  bool // keep nothing but windows
	mu       sync.RWMutex
	sessions map[Key]*stored
}

// stored is one session. Its history grows in pieces, so that an append never
// copies what is there.
type stored struct {
	head   Head
	pieces [][]*Entry // of pieceLen each, the last one shorter
	events [][]Event  // as they came

	byID    map[string]int64 // Seq of the entries that did not fail, up to indexed
	indexed int64

	// Instead of pieces and events, where only windows are kept:
	window []*Entry // what is left, by rising Seq
	system *Entry   // the system message that holds, nil for none
}

const pieceLen = 256

func (s *stored) add(e *Entry) {
	last := len(s.pieces) - 1
	if last < 0 || len(s.pieces[last]) == pieceLen {
		s.pieces = append(s.pieces, nil)
		last++
	}
	s.pieces[last] = append(s.pieces[last], e)
}

// keepWindow adds what was said and forgets what left.
func (s *stored) keepWindow(c Change) {
	from := c.State.First
	if c.State.Keep != 0 {
		from = c.State.Keep
	}
	n := 0
	for n < len(s.window) && s.window[n].Seq < from {
		s.window[n] = nil
		n++
	}
	s.window = s.window[n:]
	for _, e := range c.Entries {
		switch {
		case e.Seq == c.State.System:
			s.system = e
		case e.Status != Failed && e.Seq >= from:
			if len(s.window) == cap(s.window) {
				s.window = roomier(s.window)
			}
			s.window = append(s.window, e)
		}
	}
	if c.State.System == 0 {
		s.system = nil
	}
}

// after is the first entry with this Seq or a later one, nil where there is none.
func (s *stored) after(seq int64) *Entry {
	if s.head.State.Last < seq || s.pieces != nil {
		return s.entry(seq)
	}
	i, _ := slices.BinarySearchFunc(s.window, seq, func(e *Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
	switch {
	case s.system != nil && s.system.Seq >= seq && (i == len(s.window) || s.system.Seq < s.window[i].Seq):
		return s.system
	case i == len(s.window):
		return nil
	}
	return s.window[i]
}

// index notes where the messages stand that were said since it was called last.
// Appends of messages without ids never need it.
func (s *stored) index() {
	if s.byID == nil {
		s.byID = map[string]int64{}
	}
	for e := s.after(s.indexed + 1); e != nil; e = s.after(s.indexed + 1) {
		if e.Status != Failed {
			s.byID[e.Message.ID] = e.Seq
		}
		s.indexed = e.Seq
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
		s = &stored{}
		if p.sessions == nil {
			p.sessions = map[Key]*stored{}
		}
		p.sessions[key] = s
	}
	if p.windows {
		s.keepWindow(c)
	} else {
		for _, e := range c.Entries {
			s.add(e)
		}
		if len(c.Events) > 0 {
			s.events = append(s.events, c.Events)
		}
	}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[key]
	if s == nil {
		return nil
	}
	var found []int64
	if q.Live && !p.windows {
		s.index()
		for _, id := range q.IDs {
			if seq, ok := s.byID[id]; ok && seq >= q.From {
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
	p.mu.RLock()
	defer p.mu.RUnlock()
	if s := p.sessions[key]; s != nil {
		return s.after(seq)
	}
	return nil
}

func (p *inProcess) Events(ctx context.Context, key Key) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p.mu.RLock()
		var events [][]Event
		if s := p.sessions[key]; s != nil {
			events = s.events // appended to behind its end only
		}
		p.mu.RUnlock()
		if err := ctx.Err(); err != nil {
			yield(Event{}, err)
			return
		}
		for _, some := range events {
			for _, e := range some {
				if !yield(e, nil) {
					return
				}
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

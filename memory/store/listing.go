package store

import (
	"context"
	"iter"
	"slices"
)

// SessionQuery selects a page of the sessions of a memory.
type SessionQuery struct {
	Prefix string // only sessions whose ids begin with it
	After  string // only sessions whose ids are greater; empty: from the first one
	Limit  int    // the most sessions; 0: all
}

// SessionLister is implemented by stores that find a page of sessions without
// reading the sessions before it and those with other prefixes.
type SessionLister interface {
	// ListSessions returns the sessions of a memory that q selects, ordered by the
	// bytes of their ids, with their heads but without values.
	ListSessions(ctx context.Context, memory string, q SessionQuery) ([]SessionHead, error)
}

// ListSessions returns a page of the sessions of a memory. With a store that is
// not a SessionLister it reads the heads of all sessions up to the page's end.
func ListSessions(ctx context.Context, store Store, memory string, q SessionQuery) ([]SessionHead, error) {
	if l, ok := store.(SessionLister); ok {
		return l.ListSessions(ctx, memory, q)
	}
	return q.Page(store.Sessions(ctx, memory))
}

// Page returns the sessions that q selects of all, which are ordered by id.
func (q SessionQuery) Page(all iter.Seq2[SessionHead, error]) ([]SessionHead, error) {
	from, to := q.Bounds()
	var out []SessionHead
	for l, err := range all {
		switch {
		case err != nil:
			return nil, err
		case l.Session < from:
			continue
		case to != "" && l.Session >= to:
			return out, nil
		}
		if out = append(out, l); len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

// Bounds returns the ids that q selects as a range: from the first one on and below
// to, which is empty if there is no upper bound.
func (q SessionQuery) Bounds() (from, to string) {
	from = q.Prefix
	if q.After != "" && q.After >= from {
		from = q.After + "\x00" // the next string in the order of bytes
	}
	for n := len(q.Prefix) - 1; n >= 0; n-- {
		if last := q.Prefix[n]; last < 0xff { // no byte is greater than 0xff
			return from, q.Prefix[:n] + string([]byte{last + 1})
		}
	}
	return from, ""
}

// ReverseEventReader is implemented by stores that read the newest events of a session
// without reading those before.
type ReverseEventReader interface {
	// EventsReversed yields the events of a session, newest first, and reads them while the
	// range continues.
	EventsReversed(ctx context.Context, key Key) iter.Seq2[Event, error]
}

// EventsReversed yields the events of a session of a store, newest first. With a store that is
// not a ReverseEventReader it reads all of them before the first one.
func EventsReversed(ctx context.Context, store Store, key Key) iter.Seq2[Event, error] {
	if r, ok := store.(ReverseEventReader); ok {
		return r.EventsReversed(ctx, key)
	}
	return func(yield func(Event, error) bool) {
		var all []Event
		for e, err := range store.Events(ctx, key) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			all = append(all, e)
		}
		for _, e := range slices.Backward(all) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

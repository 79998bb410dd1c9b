package store

import (
	"context"
	"iter"
	"time"
)

// Observer is called when an operation of the store begins: head, entries, apply,
// delete or remove. The function that it returns is called at the end; nil if the
// operation need not be observed.
type Observer func(ctx context.Context, operation string) func(error)

// observedStore reports the operations of a store that turns and reads consist of.
type observedStore struct {
	Store
	observer Observer
}

// Observe returns a store that reports to observer, store itself if that is nil.
func Observe(store Store, observer Observer) Store {
	if observer == nil || store == nil {
		return store
	}
	return &observedStore{store, observer}
}

// observe reports an operation that returns an error.
func (s *observedStore) observe(ctx context.Context, operation string, run func() error) error {
	end := s.observer(ctx, operation)
	err := run()
	if end != nil {
		end(err)
	}
	return err
}

// Head returns that of the store.
func (s *observedStore) Head(ctx context.Context, key Key) (head Head, err error) {
	err = s.observe(ctx, "head", func() error { head, err = s.Store.Head(ctx, key); return err })
	return head, err
}

// Entries yields those of the store. The operation lasts as long as the range.
func (s *observedStore) Entries(ctx context.Context, key Key, q Query) iter.Seq2[*Entry, error] {
	end := s.observer(ctx, "entries")
	if end == nil {
		return s.Store.Entries(ctx, key, q)
	}
	return func(yield func(*Entry, error) bool) {
		var failed error
		defer func() { end(failed) }()
		for e, err := range s.Store.Entries(ctx, key, q) {
			failed = err
			if !yield(e, err) {
				return
			}
		}
	}
}

// Apply makes a change.
func (s *observedStore) Apply(ctx context.Context, key Key, c Change) error {
	return s.observe(ctx, "apply", func() error { return s.Store.Apply(ctx, key, c) })
}

// Delete removes a session.
func (s *observedStore) Delete(ctx context.Context, key Key) error {
	return s.observe(ctx, "delete", func() error { return s.Store.Delete(ctx, key) })
}

// Remove removes a session of a version.
func (s *observedStore) Remove(ctx context.Context, key Key, version int64) error {
	return s.observe(ctx, "remove", func() error { return Remove(ctx, s.Store, key, version) })
}

// RemoveAll removes sessions of the versions that they have in a list.
func (s *observedStore) RemoveAll(ctx context.Context, memory string, sessions []SessionHead) (n int, err error) {
	err = s.observe(ctx, "remove", func() error { n, err = RemoveAll(ctx, s.Store, memory, sessions); return err })
	return n, err
}

// Distinct is that of the store.
func (s *observedStore) Distinct() bool {
	d, ok := s.Store.(Deduplicator)
	return ok && d.Distinct()
}

// Unwrap returns the store.
func (s *observedStore) Unwrap() Store { return s.Store }

// Time returns that of the store.
func (s *observedStore) Time(ctx context.Context) (time.Time, error) { return TimeOf(ctx, s.Store) }

// ListSessions returns a page of the store's sessions.
func (s *observedStore) ListSessions(ctx context.Context, memory string, q SessionQuery) ([]SessionHead, error) {
	return ListSessions(ctx, s.Store, memory, q)
}

// EventsReversed yields the store's events, newest first.
func (s *observedStore) EventsReversed(ctx context.Context, key Key) iter.Seq2[Event, error] {
	return EventsReversed(ctx, s.Store, key)
}

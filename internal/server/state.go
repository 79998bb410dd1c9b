package server

import (
	"context"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// stateStore is the store with the state of the server: that of the application which is
// served now. A former application closes its own after a reload.
type stateStore struct{ current func() memory.Store }

// KeepOpen returns a store that applications use one after the other: Close does nothing.
func KeepOpen(store memory.Store) memory.Store {
	return stateStore{func() memory.Store { return store }}
}

// Head reads the head of a session.
func (s stateStore) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	return s.current().Head(ctx, key)
}

// Entries yields entries of a session.
func (s stateStore) Entries(ctx context.Context, key memory.Key, q store.Query) iter.Seq2[*memory.Entry, error] {
	return s.current().Entries(ctx, key, q)
}

// Events yields the events of a session.
func (s stateStore) Events(ctx context.Context, key memory.Key) iter.Seq2[memory.Event, error] {
	return s.current().Events(ctx, key)
}

// Apply makes one change.
func (s stateStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	return s.current().Apply(ctx, key, c)
}

// Delete deletes a session.
func (s stateStore) Delete(ctx context.Context, key memory.Key) error {
	return s.current().Delete(ctx, key)
}

// Remove deletes a session if its version is version.
func (s stateStore) Remove(ctx context.Context, key memory.Key, version int64) error {
	return store.Remove(ctx, s.current(), key, version)
}

// Sessions yields the sessions of one part of the store.
func (s stateStore) Sessions(ctx context.Context, part string) iter.Seq2[memory.SessionHead, error] {
	return s.current().Sessions(ctx, part)
}

// RemoveAll deletes sessions of one part of the store.
func (s stateStore) RemoveAll(ctx context.Context, part string, sessions []memory.SessionHead) (int, error) {
	return store.RemoveAll(ctx, s.current(), part, sessions)
}

// ListSessions returns a page of the sessions of one part of the store.
func (s stateStore) ListSessions(ctx context.Context, part string, q store.SessionQuery) ([]memory.SessionHead, error) {
	return store.ListSessions(ctx, s.current(), part, q)
}

// Distinct reports whether Apply rejects messages that the session has already.
func (s stateStore) Distinct() bool {
	d, ok := s.current().(store.Deduplicator)
	return ok && d.Distinct()
}

// Time returns the time of the store: leases end by it.
func (s stateStore) Time(ctx context.Context) (time.Time, error) {
	return store.TimeOf(ctx, s.current())
}

// Unwrap returns the store, for store.IsServer.
func (s stateStore) Unwrap() memory.Store { return s.current() }

// Close does nothing: the application closes its store.
func (s stateStore) Close() error { return nil }

// Package encrypted encrypts what any other store keeps, with AES-256-GCM: the
// text, media, name and role of messages, tool calls with their arguments, the
// reasons of events, and named values. Readable in the inner store are the ids of
// memories, sessions, messages and keys, the names of named values, and numbers:
// sequence numbers, turns, tokens and times.
//
// A record is bound to its memory, its session and its position there, and a
// message also to its tokens, time and status: a record that was modified or moved
// is an error. With every change the head of a session gets a new seal over its
// version, its state, its named values and a running hash of its events. So a
// modified head, a message or event that was added or removed, and a value that
// was replaced by an older one are errors too. What the store alone cannot show is
// that a whole session was restored to an earlier state, or deleted.
package encrypted

import (
	"context"
	"fmt"
	"iter"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Keys are the keys of a store.
type Keys struct {
	Key              Key   // encrypts
	Old              []Key // decrypt what earlier keys encrypted
	AllowUnencrypted bool  // read data that is not encrypted; otherwise it is an error
}

// ID identifies the keys without revealing them.
func (k Keys) ID() string {
	return fmt.Sprint(k.Key.ID(), k.Old, k.AllowUnencrypted)
}

// Store is a store.Store that encrypts what it writes to another one. It is safe
// for concurrent use.
type Store struct {
	inner            store.Store
	location         storage.Location
	keys             []Key // the first one encrypts
	allowUnencrypted bool
	heads            *lru.Cache[store.Key, *verifiedHead]
}

// New returns a store on top of inner, which must keep the whole history: a
// message that is gone is reported as missing. location names inner in errors,
// without credentials.
func New(inner store.Store, location string, keys Keys) *Store {
	heads, err := lru.New[store.Key, *verifiedHead](maxHeads)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Store{inner: inner, location: storage.Location(location), keys: append([]Key{keys.Key}, keys.Old...),
		allowUnencrypted: keys.AllowUnencrypted, heads: heads}
}

// Location names the place where the store keeps its data, without credentials.
func (s *Store) Location() string { return string(s.location) }

// Apply encrypts and makes a change, with a new seal of the session's head. It
// reads the head only if the change's version is not cached.
func (s *Store) Apply(ctx context.Context, key store.Key, c store.Change) error {
	if _, reserved := c.Values[sealName]; reserved {
		return fmt.Errorf("the name %s is reserved for the seal of a session; use another name", sealName)
	}
	sc := s.cipherFor(key)
	base, err := s.headAt(ctx, sc, c.Version)
	if err != nil {
		return err
	}
	seal := base.seal
	if !base.sealed {
		if seal, err = s.upgradeHead(ctx, sc, base); err != nil {
			return err
		}
	}
	encrypted, err := sc.encryptChange(c)
	if err != nil {
		return err
	}
	next, err := seal.after(&encrypted)
	if err != nil {
		return err
	}
	if encrypted.Values[sealName], err = sc.encodeSeal(c.Next, next); err != nil {
		return err
	}
	if err := s.inner.Apply(ctx, key, encrypted); err != nil {
		return err
	}
	s.heads.Add(key, &verifiedHead{version: c.Next, sealed: true, seal: next})
	return nil
}

// Head returns the session's head, checked against its seal and decrypted.
func (s *Store) Head(ctx context.Context, key store.Key) (store.Head, error) {
	sc := s.cipherFor(key)
	head, _, err := s.readHead(ctx, sc)
	if err != nil || head.Values == nil {
		return head, err
	}
	values := make(map[string][]byte, len(head.Values))
	for name, record := range head.Values {
		if values[name], err = sc.decryptValue(name, record); err != nil {
			return store.Head{}, err
		}
	}
	head.Values = values
	return head, nil
}

// Delete removes a session with everything that belongs to it. It needs no key.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	s.heads.Remove(key)
	return s.inner.Delete(ctx, key)
}

// Remove deletes a session if its version is still version. It is as atomic as
// that of the inner store.
func (s *Store) Remove(ctx context.Context, key store.Key, version int64) error {
	return store.Remove(ctx, s.inner, key, version)
}

// RemoveAll deletes sessions that still have the versions of their heads.
func (s *Store) RemoveAll(ctx context.Context, mem string, sessions []store.SessionHead) (int, error) {
	return store.RemoveAll(ctx, s.inner, mem, sessions)
}

// Distinct returns that of the inner store.
func (s *Store) Distinct() bool {
	d, ok := s.inner.(store.Deduplicator)
	return ok && d.Distinct()
}

// Unwrap returns the inner store.
func (s *Store) Unwrap() store.Store { return s.inner }

// Time returns that of the inner store.
func (s *Store) Time(ctx context.Context) (time.Time, error) { return store.TimeOf(ctx, s.inner) }

// Sessions yields the sessions of one memory. It needs no key, so it does not
// check the heads.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[store.SessionHead, error] {
	return s.inner.Sessions(ctx, mem)
}

// ListSessions returns a page of the sessions of a memory, whose heads have no values.
func (s *Store) ListSessions(ctx context.Context, mem string, q store.SessionQuery) ([]store.SessionHead, error) {
	return store.ListSessions(ctx, s.inner, mem, q)
}

// Close closes the inner store.
func (s *Store) Close() error { return s.inner.Close() }

// Package sealed encrypts what a store keeps, whichever store it is: texts,
// media, names and roles of messages, tool calls with their arguments, the
// reasons of events and named values are sealed with AES-256-GCM before the
// store sees them. Who reads the store's files sees ids of memories, sessions,
// messages and keys, names of named values, and numbers: places, turns, tokens,
// times.
//
// A record is bound to its memory, its session and its place there, and a
// message to its tokens, time and status as well: one that was changed, or put
// in another's place, is an error. The head of a session carries a seal, made
// anew with every change, over its version, its state, its named values and a
// running hash of its events: so a head that was changed, a message or an event
// that was removed, added or cut off the end, and a value put back to an older
// one are errors too. Only that a whole session was put back to what it once was,
// or deleted, nobody can tell who looks at the store alone.
package encrypted

import (
	"context"
	"fmt"
	"iter"

	"github.com/qtype-dev/qtype/memory"
)

// Keys are what a store is sealed with.
type Keys struct {
	Key        Key   // seals all that is said from now on
	Old        []Key // open what was sealed before
	AllowPlain bool  // what is not sealed is read as it is; else it is an error
}

// Names tells keys apart without giving them away.
func (k Keys) Names() string {
	return fmt.Sprint(k.Key.ID(), k.Old, k.AllowPlain)
}

// Store is a memory.Store that keeps what it is told, sealed, in another one.
// It is safe for concurrent use.
type Store struct {
	inner memory.Store
	place string
	keys  []Key // the first one seals
	plain bool
	heads headCache
}

// New seals what goes into a store; place names it in errors, without credentials.
// The store must keep the history: of one that forgets what left the window
// (memory.NewInProcessWindows), messages would seem to be missing.
func New(inner memory.Store, place string, keys Keys) *Store {
	return &Store{inner: inner, place: place, keys: append([]Key{keys.Key}, keys.Old...), plain: keys.AllowPlain}
}

// Place is where the store keeps things, without credentials.
func (s *Store) Place() string { return s.place }

// Apply seals a change and makes it, with a new seal of the session's head. It
// reads the head only where the session is not known at the change's version.
func (s *Store) Apply(ctx context.Context, key memory.Key, c memory.Change) error {
	b := s.box(key)
	if _, taken := c.Values[sealName]; taken {
		return fmt.Errorf("a value cannot be called %s: the seal of a session's head is", sealName)
	}
	k, err := s.headAt(ctx, b, c.Version)
	if err != nil {
		return err
	}
	from := k.proof
	if !k.sealed {
		if from, err = s.upgradeHead(ctx, b, k); err != nil {
			return err
		}
	}
	sealed, err := b.sealChange(c)
	if err != nil {
		return err
	}
	next, err := from.after(&sealed)
	if err != nil {
		return err
	}
	if sealed.Values[sealName], err = b.sealProof(c.Next, next); err != nil {
		return err
	}
	if err := s.inner.Apply(ctx, key, sealed); err != nil {
		return err
	}
	s.heads.put(key, &verifiedHead{version: c.Next, sealed: true, proof: next})
	return nil
}

// Head is where the session stands, checked against its seal, with its values opened.
func (s *Store) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	b := s.box(key)
	head, _, err := s.readHead(ctx, b)
	if err != nil || head.Values == nil {
		return head, err
	}
	opened := make(map[string][]byte, len(head.Values))
	for name, record := range head.Values {
		if opened[name], err = b.openValue(name, record); err != nil {
			return memory.Head{}, err
		}
	}
	head.Values = opened
	return head, nil
}

// Delete removes everything that the session has. It needs no key.
func (s *Store) Delete(ctx context.Context, key memory.Key) error {
	s.heads.drop(key)
	return s.inner.Delete(ctx, key)
}

// Remove is Delete for a session that still has the version. Where the store
// below cannot do that in one step, neither can this one.
func (s *Store) Remove(ctx context.Context, key memory.Key, version int64) error {
	return memory.Remove(ctx, s.inner, key, version)
}

// Distinct is that of the store below.
func (s *Store) Distinct() bool {
	d, ok := s.inner.(memory.Deduplicator)
	return ok && d.Distinct()
}

// Sessions yields the sessions of one memory. It needs no key, and so shows the
// heads as they stand there, unchecked.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[memory.SessionHead, error] {
	return s.inner.Sessions(ctx, mem)
}

// Close closes the store below.
func (s *Store) Close() error { return s.inner.Close() }

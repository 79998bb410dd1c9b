// Package storecopy copies the sessions of memories between two stores of any kinds.
//
//	report, err := storecopy.Copy(ctx, from, to, m.ID())
//
// A copy is the session itself, with its version: a later call copies what has changed
// since, and the cache of vectors that belongs to a session stays valid. The stores may be
// in use. Each session that was copied is read again and compared by a digest.
package storecopy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory/store"
)

// Report is what Copy has done.
type Report struct {
	Copied    int      // sessions that were copied
	Messages  int64    // their messages, those of failed turns included
	Same      int      // sessions that were in the target already
	Newer     int      // sessions that went on in the target since they were copied, which were left alone
	Conflicts []string // other sessions of the target with the same id, which were left alone
}

// MismatchError reports that a session that was copied is not what was read.
type MismatchError struct {
	Session string // its id
}

// Error names the session.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("session %q: the copy differs from the session that was read", e.Session)
}

const (
	maxAttempts = 20      // of a session that turns change meanwhile
	chunk       = 5_000   // messages of one change
	generation  = 1 << 40 // the most changes of a session between its creation and its deletion
)

// Copy copies the sessions of a memory, with what its context stores apart from them. What
// is in the target and not in the source stays. After an error, calling it again continues.
func Copy(ctx context.Context, from, to store.Store, id string) (Report, error) {
	var report Report
	for i, stored := range promptcontext.StoredMemories(id) {
		for l, err := range sessionsOf(ctx, from, stored) {
			if err != nil {
				return report, err
			}
			c := &copier{from: from, to: to, key: store.Key{Memory: stored, Session: l.Session}}
			if err := c.copy(ctx); err != nil {
				return report, err
			}
			if i == 0 {
				report.add(c)
			}
		}
	}
	return report, nil
}

// sessionsOf yields the sessions of a memory, read in pages: a store may have no room for
// a reader and a writer at once.
func sessionsOf(ctx context.Context, s store.Store, id string) func(func(store.SessionHead, error) bool) {
	const page = 500
	return func(yield func(store.SessionHead, error) bool) {
		for q := (store.SessionQuery{Limit: page}); ; {
			all, err := store.ListSessions(ctx, s, id, q)
			if err != nil {
				yield(store.SessionHead{}, err)
				return
			}
			for _, l := range all {
				if q.After = l.Session; !yield(l, nil) {
					return
				}
			}
			if len(all) < page {
				return
			}
		}
	}
}

func (r *Report) add(c *copier) {
	switch c.outcome {
	case copied:
		r.Copied++
		r.Messages += c.messages
	case same:
		r.Same++
	case newer:
		r.Newer++
	case conflict:
		r.Conflicts = append(r.Conflicts, c.key.Session)
	}
}

// outcome is the result of copying a session.
type outcome int

const (
	gone outcome = iota // it was deleted meanwhile
	copied
	same
	newer
	conflict
)

// copier copies one session.
type copier struct {
	from, to store.Store
	key      store.Key
	messages int64
	outcome  outcome
}

// copy copies the session; again if a turn changed it meanwhile.
func (c *copier) copy(ctx context.Context) error {
	for range maxAttempts {
		head, err := c.from.Head(ctx, c.key)
		if err != nil || head.Version == 0 {
			return err
		}
		target, err := c.to.Head(ctx, c.key)
		if err != nil {
			return err
		}
		if c.outcome = compare(head.Version, target.Version); c.outcome != copied {
			return nil
		}
		if target.Version != 0 { // an earlier copy, or a part of one
			if err := store.Remove(ctx, c.to, c.key, target.Version); err != nil && !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
		done, err := c.transfer(ctx, head)
		if done || err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("session %q was changed %d times while it was copied: %w", c.key.Session, maxAttempts, store.ErrConflict)
}

// compare returns what is to be done with a session that has these versions.
func compare(source, target int64) outcome {
	switch {
	case source == target:
		return same
	case target == 0 || target < source && source-target < generation:
		return copied
	case target > source && target-source < generation:
		return newer
	}
	return conflict
}

// transfer writes the session with a head to the target and compares. It returns false
// if the session was changed meanwhile.
func (c *copier) transfer(ctx context.Context, head store.Head) (bool, error) {
	sum, err := c.write(ctx, head)
	if err != nil {
		return false, err
	}
	now, err := c.from.Head(ctx, c.key)
	if err != nil || now.Version != head.Version {
		return false, err
	}
	written, err := c.to.Head(ctx, c.key)
	if err != nil {
		return false, err
	}
	if written.Version != head.Version { // a turn has begun in the target
		return true, nil
	}
	check := newDigest()
	for e, err := range c.to.Entries(ctx, c.key, store.Query{}) {
		if err != nil {
			return false, err
		}
		check.entry(e)
	}
	for e, err := range c.to.Events(ctx, c.key) {
		if err != nil {
			return false, err
		}
		check.event(&e)
	}
	check.head(written)
	if check.sum() != sum {
		return false, &MismatchError{Session: c.key.Session}
	}
	return true, nil
}

// write writes a session in changes of some messages, the last of which has its version,
// and returns its digest.
func (c *copier) write(ctx context.Context, head store.Head) (string, error) {
	d := newDigest()
	parts := (head.State.Last + chunk - 1) / chunk
	version := int64(0)
	var entries []*store.Entry
	apply := func(change store.Change) error {
		change.Version, change.Entries = version, entries
		version, entries = change.Next, nil
		return c.to.Apply(ctx, c.key, change)
	}
	c.messages = 0
	for e, err := range c.from.Entries(ctx, c.key, store.Query{To: max(head.State.Last, 1)}) {
		if err != nil {
			return "", err
		}
		if e.Seq > head.State.Last {
			continue
		}
		d.entry(e)
		c.messages++
		if entries = append(entries, e); len(entries) == chunk && e.Seq < head.State.Last && head.Version > parts {
			parts--
			if err := apply(store.Change{Next: head.Version - parts, State: store.State{Last: e.Seq, First: e.Seq + 1, Turns: e.Turn, LastSaid: e.Time}}); err != nil {
				return "", err
			}
		}
	}
	if c.messages != head.State.Last {
		return "", store.ErrConflict // it was deleted, or entries are missing
	}
	var events []store.Event
	for e, err := range c.from.Events(ctx, c.key) {
		if err != nil {
			return "", err
		}
		d.event(&e)
		events = append(events, e)
	}
	d.head(head)
	return d.sum(), apply(store.Change{Next: head.Version, State: head.State, Events: events, Values: head.Values})
}

// digest is a hash of the content of a session.
type digest struct{ hash.Hash }

func newDigest() *digest { return &digest{sha256.New()} }

func (d *digest) entry(e *store.Entry) {
	plain := *e
	plain.Time = plain.Time.UTC()
	if e.Status != store.Failed {
		plain.Status = store.InWindow // stores keep no others
	}
	_, _ = fmt.Fprintf(d, "%+v\n", plain) // a hash has no errors
}

func (d *digest) event(e *store.Event) {
	plain := *e
	plain.Time = plain.Time.UTC()
	_ = json.NewEncoder(d).Encode(plain) // numbers and texts
}

func (d *digest) head(h store.Head) {
	_ = json.NewEncoder(d).Encode(h.State) // numbers and texts
	for _, name := range slices.Sorted(maps.Keys(h.Values)) {
		_, _ = fmt.Fprintf(d, "%q %x\n", name, h.Values[name])
	}
}

func (d *digest) sum() string { return string(d.Sum(nil)) }

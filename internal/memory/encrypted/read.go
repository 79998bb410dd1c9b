package encrypted

import (
	"bytes"
	"context"
	"iter"

	"github.com/qtype-dev/qtype/memory/store"
)

// maxRereads bounds how often a head is read again because another writer deletes
// and recreates the session during the read.
const maxRereads = 64

// Entries yields decrypted entries. It reads a range with the failed messages even
// if q excludes them, because otherwise it could not detect missing ones. A
// search by ids does not detect them.
func (s *Store) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		r := reader{store: s, cipher: s.cipherFor(key), yield: yield, query: q, next: max(q.From, 1)}
		if err := r.read(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// reader reads the entries of one query.
type reader struct {
	store  *Store
	cipher *sessionCipher
	yield  func(*store.Entry, error) bool
	query  store.Query
	head   *verifiedHead // of the session, from before the read
	next   int64         // Seq of the next entry
}

// read yields the entries. It returns a verification error only after it has read
// the head again and found that no other writer changed the session meanwhile.
func (r *reader) read(ctx context.Context) error {
	k, _ := r.store.heads.Get(r.cipher.session)
	ranged := r.query.IDs == nil
	if k == nil || ranged && (r.query.To == 0 || r.query.To > k.seal.State.Last) {
		var err error
		if _, k, err = r.store.readHead(ctx, r.cipher); err != nil {
			return err
		}
	}
	for attempt := 0; attempt < maxRereads; attempt++ {
		r.head = k
		start := r.next
		invalid, err := r.readOnce(ctx)
		if err != nil || invalid == nil {
			return err
		}
		if r.next > start {
			attempt = 0 // there was progress
		}
		if _, k, err = r.store.readHead(ctx, r.cipher); err != nil {
			return err
		}
		if k.unchangedSince(r.head) {
			return invalid
		}
	}
	return r.cipher.contentionError()
}

// contentionError returns the error if the session changed during every attempt.
func (sc *sessionCipher) contentionError() error {
	return sc.error(store.Locked, "messages", "other writers delete and recreate the session faster than it can be read; try again")
}

// readOnce yields entries from r.next on. It stops at one that contradicts the
// head; invalid is the reason.
func (r *reader) readOnce(ctx context.Context) (invalid, err error) {
	q := r.query
	q.From = r.next
	if q.IDs == nil {
		q.Live = false
	}
	for e, err := range r.store.inner.Entries(ctx, r.cipher.session, q) {
		if err != nil {
			return nil, err
		}
		if invalid := r.checkEntry(e); invalid != nil {
			return invalid, nil
		}
		plain, err := r.cipher.decryptEntry(e)
		if err != nil {
			return nil, err
		}
		r.next = e.Seq + 1
		if r.query.Live && e.Status == store.Failed {
			continue
		}
		if !r.yield(plain, nil) {
			return nil, nil
		}
	}
	last := r.head.seal.State.Last
	if q.To != 0 {
		last = min(last, q.To)
	}
	if q.IDs == nil && r.next <= last {
		return r.missing(), nil
	}
	return nil, nil
}

// checkEntry returns an error if an entry's Seq or format contradicts the head.
func (r *reader) checkEntry(e *store.Entry) error {
	if r.query.IDs == nil && e.Seq != r.next {
		return r.missing()
	}
	sealed := formatOf(recordOf(e)) >= formatSealed
	switch {
	case e.Seq > r.head.seal.State.Last:
		return r.cipher.error(store.Corrupt, messagePart(e.Seq), "not counted by the session's head")
	case sealed && !r.head.sealed:
		return r.cipher.error(store.Corrupt, headPart, noSeal)
	case !sealed && r.head.sealed && e.Seq > r.head.seal.Before:
		return r.cipher.error(store.Corrupt, messagePart(e.Seq), "not encrypted as the other messages of the session, or modified")
	}
	return nil
}

func (r *reader) missing() error {
	return r.cipher.error(store.Corrupt, messagePart(r.next), "missing, or moved")
}

// Events yields the session's events, decrypted. It detects changes of the list
// after the last event.
func (s *Store) Events(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		sc := s.cipherFor(key)
		_, k, err := s.readHead(ctx, sc)
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		t := eventHash{known: k}
		for e, err := range s.inner.Events(ctx, key) {
			if err == nil && t.done() {
				t.more = true
				break
			}
			if err == nil {
				err = t.add(&e)
			}
			if err == nil {
				e, err = sc.decryptEvent(e)
			}
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := s.checkEvents(ctx, sc, &t); err != nil {
			yield(store.Event{}, err)
		}
	}
}

// eventHash compares events with the running hash of a head.
type eventHash struct {
	known  *verifiedHead // from before the events were read
	events int64         // number of events read
	chain  []byte        // hash of the events read
	sealed bool          // one was added to a session with a seal
	more   bool          // there are more events than the head counts
}

// done reports whether all events that the head counts were read.
func (t *eventHash) done() bool { return t.known.sealed && t.events == t.known.seal.Events }

// add adds an encrypted event.
func (t *eventHash) add(e *store.Event) (err error) {
	t.events++
	t.sealed = t.sealed || isSealedEvent(e)
	t.chain, err = chainHash(t.chain, e)
	return err
}

// matches reports whether the events are the ones that the head counts. There may be
// more.
func (t *eventHash) matches() bool {
	if !t.known.sealed {
		return !t.sealed
	}
	return t.done() && bytes.Equal(t.chain, t.known.seal.Chain)
}

// checkEvents returns an error if the events are not those of the head. If the
// session changed meanwhile, more events are allowed; if it was deleted and
// recreated, they are hashed again.
func (s *Store) checkEvents(ctx context.Context, sc *sessionCipher, t *eventHash) error {
	for range maxRereads {
		if t.matches() && !t.more {
			return nil
		}
		_, now, err := s.readHead(ctx, sc)
		switch {
		case err != nil:
			return err
		case now.unchangedSince(t.known):
			return sc.error(store.Corrupt, "events", "an event was added, removed or modified after the session was sealed")
		case t.matches():
			return nil
		}
		if t, err = s.hashEvents(ctx, sc, now); err != nil {
			return err
		}
	}
	return sc.contentionError()
}

// hashEvents hashes as many events as a head counts.
func (s *Store) hashEvents(ctx context.Context, sc *sessionCipher, k *verifiedHead) (*eventHash, error) {
	t := &eventHash{known: k}
	for e, err := range s.inner.Events(ctx, sc.session) {
		if err == nil && t.done() {
			t.more = true
			break
		}
		if err == nil {
			err = t.add(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

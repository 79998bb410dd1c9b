package encrypted

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/qtype-dev/qtype/memory"
)

// maxRereads bounds how often a head is read again because another writer deleted
// the session, and began it anew, while it was read.
const maxRereads = 64

// Entries yields entries, opened one by one. A range of places is read with the
// messages that failed, whatever q says, for only so it shows that none is
// missing. A search by ids shows what is found, not what is missing.
func (s *Store) Entries(ctx context.Context, key memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		r := reader{store: s, box: s.box(key), yield: yield, query: q, next: max(q.From, 1)}
		if err := r.read(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// reader reads the entries of one query.
type reader struct {
	store *Store
	box   *sessionCipher
	yield func(*memory.Entry, error) bool
	query memory.Query
	known *verifiedHead // the session as it was before the reading began
	next  int64         // the place behind the newest one that was read
}

// read yields what is asked for. What cannot be is told only once the head says
// that nobody has changed the session meanwhile.
func (r *reader) read(ctx context.Context) error {
	k := r.store.heads.get(r.box.session)
	ranged := r.query.IDs == nil
	if k == nil || ranged && (r.query.To == 0 || r.query.To > k.proof.State.Last) {
		var err error
		if _, k, err = r.store.readHead(ctx, r.box); err != nil {
			return err
		}
	}
	for looks := 0; looks < maxRereads; looks++ {
		r.known = k
		began := r.next
		doubt, err := r.readOnce(ctx)
		if err != nil || doubt == nil {
			return err
		}
		if r.next > began {
			looks = 0 // others go on writing, and so does the reading
		}
		if _, k, err = r.store.readHead(ctx, r.box); err != nil {
			return err
		}
		if k.same(r.known) {
			return doubt
		}
	}
	return r.box.contentionError()
}

// contentionError is the error of a reader who was never let finish.
func (b *sessionCipher) contentionError() error {
	return b.keyError(memory.Locked, "its messages", "other writers delete it and begin it anew faster than it can be read")
}

// readOnce reads from where the reading stands to its end, or to what is not as the
// head says: doubt tells what that is.
func (r *reader) readOnce(ctx context.Context) (doubt, err error) {
	q := r.query
	q.From = r.next
	if q.IDs == nil {
		q.Live = false
	}
	for e, err := range r.store.inner.Entries(ctx, r.box.session, q) {
		if err != nil {
			return nil, err
		}
		if doubt := r.checkEntry(e); doubt != nil {
			return doubt, nil
		}
		opened, err := r.box.openEntry(e)
		if err != nil {
			return nil, err
		}
		r.next = e.Seq + 1
		if r.query.Live && e.Status == memory.Failed {
			continue
		}
		if !r.yield(opened, nil) {
			return nil, nil
		}
	}
	last := r.known.proof.State.Last
	if q.To != 0 {
		last = min(last, q.To)
	}
	if q.IDs == nil && r.next <= last {
		return r.missing(), nil
	}
	return nil, nil
}

// checkEntry is what is wrong with an entry's place, or with its not being sealed as
// it must be there.
func (r *reader) checkEntry(e *memory.Entry) error {
	if r.query.IDs == nil && e.Seq != r.next {
		return r.missing()
	}
	counted := format(recordOf(e)) >= formatCounted
	switch {
	case e.Seq > r.known.proof.State.Last:
		return r.box.keyError(memory.Corrupt, fmt.Sprint("message ", e.Seq), "it stands behind the last one of which the head knows")
	case counted && !r.known.sealed:
		return r.box.keyError(memory.Corrupt, "its head", noSeal)
	case !counted && r.known.sealed && e.Seq > r.known.proof.Before:
		return r.box.keyError(memory.Corrupt, fmt.Sprint("message ", e.Seq), "it is not encrypted as this session is, or was changed")
	}
	return nil
}

func (r *reader) missing() error {
	return r.box.keyError(memory.Corrupt, fmt.Sprint("message ", r.next), "it is missing, or not in its place")
}

// Events yields the session's events, opened. Whether one was removed, added or
// changed shows when all were read.
func (s *Store) Events(ctx context.Context, key memory.Key) iter.Seq2[memory.Event, error] {
	return func(yield func(memory.Event, error) bool) {
		b := s.box(key)
		_, k, err := s.readHead(ctx, b)
		if err != nil {
			yield(memory.Event{}, err)
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
				e, err = b.openEvent(e)
			}
			if err != nil {
				yield(memory.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := s.checkEvents(ctx, b, &t); err != nil {
			yield(memory.Event{}, err)
		}
	}
}

// eventHash is a running hash over events, as a head's is.
type eventHash struct {
	known   *verifiedHead // the session as it was before they were read
	events  int64         // how many were read
	chain   []byte        // the hash over them
	counted bool          // one was sealed in a session whose head had a seal
	more    bool          // there are more of them than the head knows of
}

// done tells whether all events were read of which the head knows.
func (t *eventHash) done() bool { return t.known.sealed && t.events == t.known.proof.Events }

// add takes one more event, as the store keeps it.
func (t *eventHash) add(e *memory.Event) (err error) {
	t.events++
	t.counted = t.counted || isCounted(e)
	t.chain, err = chainHash(t.chain, e)
	return err
}

// matches tells whether the events are those of which the head knows, whatever comes behind them.
func (t *eventHash) matches() bool {
	if !t.known.sealed {
		return !t.counted
	}
	return t.done() && bytes.Equal(t.chain, t.known.proof.Chain)
}

// checkEvents is an error where the events are not those of the head. Where the
// session was changed meanwhile, there may be more by now; where it was deleted,
// they are read again, for their hash alone.
func (s *Store) checkEvents(ctx context.Context, b *sessionCipher, t *eventHash) error {
	for range maxRereads {
		if t.matches() && !t.more {
			return nil
		}
		_, now, err := s.readHead(ctx, b)
		switch {
		case err != nil:
			return err
		case now.same(t.known):
			return b.keyError(memory.Corrupt, "its events", "one was removed, added or changed after it was sealed")
		case t.matches():
			return nil
		}
		if t, err = s.count(ctx, b, now); err != nil {
			return err
		}
	}
	return b.contentionError()
}

// count reads events for their hash, as many as a head knows of.
func (s *Store) count(ctx context.Context, b *sessionCipher, k *verifiedHead) (*eventHash, error) {
	t := &eventHash{known: k}
	for e, err := range s.inner.Events(ctx, b.session) {
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

package encrypted

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"

	"github.com/qtype-dev/qtype/memory/store"
)

// contentDigest is the number and the digest of the messages and events at the beginning
// of a session, which no writer changes.
type contentDigest struct {
	messages, events int64
	sum              [sha256.Size]byte
}

// digest reads messages up to a position, and as many events, all for -1, through a store
// that decrypts them.
func (r *reencryption) digest(ctx context.Context, s *Store, last, events int64) (contentDigest, error) {
	var d contentDigest
	h := sha256.New()
	if last > 0 {
		for e, err := range s.Entries(ctx, r.cipher.session, store.Query{To: last}) {
			if err != nil {
				return d, err
			}
			plain := *e
			plain.Time = plain.Time.UTC()
			if err := addJSON(h, plain); err != nil {
				return d, err
			}
			d.messages++
		}
	}
	for e, err := range s.Events(ctx, r.cipher.session) {
		if err != nil {
			return d, err
		}
		if d.events == events {
			break
		}
		e.Time = e.Time.UTC()
		if err := addJSON(h, e); err != nil {
			return d, err
		}
		d.events++
	}
	d.sum = [sha256.Size]byte(h.Sum(nil))
	return d, nil
}

func addJSON(h hash.Hash, v any) error { return json.NewEncoder(h).Encode(v) }

// verify reads the session with the newest key alone and compares it with what it was. It
// is not an error if another writer used another key meanwhile: the caller looks again.
func (r *reencryption) verify(ctx context.Context, version int64, before contentDigest) error {
	strict := New(r.store.inner, string(r.store.location), Keys{Key: r.store.keys[0]})
	after, err := r.digest(ctx, strict, before.messages, before.events)
	head, headErr := r.store.inner.Head(ctx, r.cipher.session)
	var stored *store.Error
	switch {
	case headErr != nil:
		return headErr
	case !continues(version, head.Version): // it was deleted
		return nil
	case errors.As(err, &stored) && stored.Problem == store.WrongKey:
		return nil
	case err != nil:
		return err
	case after != before:
		return r.cipher.error(store.Corrupt, "messages", "after the encryption it reads differently than before")
	}
	return nil
}

package encrypted

import (
	"context"

	"github.com/qtype-dev/qtype/memory/store"
)

// verifiedHead is what was verified about a session at one version. It is
// immutable: a session does not change without changing its version.
type verifiedHead struct {
	version int64 // 0: the store does not hold the session
	sealed  bool  // its head has a seal
	seal    *headSeal
}

// unchangedSince reports whether the session did not change since before was
// verified. An absent session may have been created and deleted meanwhile.
func (k *verifiedHead) unchangedSince(before *verifiedHead) bool {
	return k.version == before.version && k.version != 0
}

// maxHeads is the number of cached heads, of about half a kilobyte each. A change
// of another session reads the head again.
const maxHeads = 4096

// readHead reads and checks a session's head. The result has no seal among its
// values, which are still encrypted.
func (s *Store) readHead(ctx context.Context, sc *sessionCipher) (store.Head, *verifiedHead, error) {
	head, err := s.inner.Head(ctx, sc.session)
	if err != nil {
		return store.Head{}, nil, err
	}
	if head.Version == 0 {
		return head, &verifiedHead{seal: &headSeal{}}, nil
	}
	k := &verifiedHead{version: head.Version}
	record, sealed := head.Values[sealName]
	if sealed {
		k.sealed = true
		if k.seal, err = sc.openSeal(head.Version, record); err == nil {
			head.Values = withoutValue(head.Values, sealName)
			err = sc.checkHead(&head, k.seal)
		}
	} else {
		k.seal, err = sc.unsealedHead(&head)
	}
	if err != nil {
		return store.Head{}, nil, err
	}
	s.heads.Add(sc.session, k)
	return head, k, nil
}

// withoutValue returns a copy of values without one of them, nil if it is empty.
func withoutValue(values map[string][]byte, name string) map[string][]byte {
	var rest map[string][]byte
	for n, v := range values {
		if n == name {
			continue
		}
		if rest == nil {
			rest = make(map[string][]byte, len(values)-1)
		}
		rest[n] = v
	}
	return rest
}

// headAt returns the session's head at the version that a change is based on, or
// ErrConflict if the session has another version.
func (s *Store) headAt(ctx context.Context, sc *sessionCipher, version int64) (*verifiedHead, error) {
	if version == 0 {
		return &verifiedHead{sealed: true, seal: &headSeal{}}, nil
	}
	if k, ok := s.heads.Get(sc.session); ok && k.version == version {
		return k, nil
	}
	_, k, err := s.readHead(ctx, sc)
	switch {
	case err != nil:
		return nil, err
	case k.version != version:
		return nil, store.ErrConflict
	}
	return k, nil
}

// upgradeHead returns the first seal of a session that has none: it accepts what
// the session holds and counts it from now on. It reads the session's events once.
func (s *Store) upgradeHead(ctx context.Context, sc *sessionCipher, k *verifiedHead) (*headSeal, error) {
	t, err := s.hashEvents(ctx, sc, k)
	if err != nil {
		return nil, err
	}
	if !t.matches() {
		_, now, err := s.readHead(ctx, sc)
		if err == nil && now.unchangedSince(k) {
			err = sc.error(store.Corrupt, headPart, noSeal)
		}
		if err == nil {
			err = store.ErrConflict
		}
		return nil, err
	}
	p := *k.seal
	p.Before, p.Events, p.Chain = p.State.Last, t.events, t.chain
	return &p, nil
}

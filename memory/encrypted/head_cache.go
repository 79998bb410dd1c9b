package encrypted

import (
	"context"
	"sync"

	"github.com/qtype-dev/qtype/memory"
)

// verifiedHead is what was found out of a session at one version. It never changes, and
// neither does the session without changing its version.
type verifiedHead struct {
	version int64     // 0: the store does not hold the session
	sealed  bool      // its head has a seal
	proof   *headSeal // what the seal says, or what it would have said
}

// same tells whether the session was as it is now all the time since before was
// found out. One that is not there may have been there meanwhile.
func (k *verifiedHead) same(before *verifiedHead) bool {
	return k.version == before.version && k.version != 0
}

// maxHeads bounds how many sessions are known: twice as many at most, of about
// half a kilobyte each. Of one that is not, a change reads the head again.
const maxHeads = 4096

// headCache keep what is known of the sessions that were used last. They are safe
// for concurrent use.
type headCache struct {
	mu         sync.Mutex
	young, old map[memory.Key]*verifiedHead // old is what young was when it was full
}

func (h *headCache) get(key memory.Key) *verifiedHead {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.young[key]
	if k == nil {
		if k = h.old[key]; k != nil {
			h.add(key, k)
		}
	}
	return k
}

func (h *headCache) put(key memory.Key, k *verifiedHead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(key, k)
}

func (h *headCache) add(key memory.Key, k *verifiedHead) {
	if h.young == nil || len(h.young) >= maxHeads {
		h.young, h.old = map[memory.Key]*verifiedHead{}, h.young
	}
	h.young[key] = k
}

func (h *headCache) drop(key memory.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.young, key)
	delete(h.old, key)
}

// readHead reads a session's head and checks it. The head is the store's, without
// the seal; its values are not opened yet.
func (s *Store) readHead(ctx context.Context, b *sessionCipher) (memory.Head, *verifiedHead, error) {
	head, err := s.inner.Head(ctx, b.session)
	if err != nil {
		return memory.Head{}, nil, err
	}
	if head.Version == 0 {
		return head, &verifiedHead{proof: &headSeal{}}, nil
	}
	k := &verifiedHead{version: head.Version}
	record, sealed := head.Values[sealName]
	if sealed {
		k.sealed = true
		if k.proof, err = b.openProof(head.Version, record); err == nil {
			head.Values = withoutValue(head.Values, sealName)
			err = b.check(&head, k.proof)
		}
	} else {
		k.proof, err = b.unsealedHead(&head)
	}
	if err != nil {
		return memory.Head{}, nil, err
	}
	s.heads.put(b.session, k)
	return head, k, nil
}

// withoutValue are the values that are not called name; nil where there are none. The
// store's own map is left as it is.
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

// headAt is what is known of the session at the version that a change starts from.
func (s *Store) headAt(ctx context.Context, b *sessionCipher, version int64) (*verifiedHead, error) {
	if version == 0 {
		return &verifiedHead{sealed: true, proof: &headSeal{}}, nil
	}
	if k := s.heads.get(b.session); k != nil && k.version == version {
		return k, nil
	}
	_, k, err := s.readHead(ctx, b)
	switch {
	case err != nil:
		return nil, err
	case k.version != version:
		return nil, memory.ErrConflict
	}
	return k, nil
}

// upgradeHead is the proof that a session without a seal goes on from: what it holds is
// taken as it is, and counted from now on. It reads the session's events, once.
func (s *Store) upgradeHead(ctx context.Context, b *sessionCipher, k *verifiedHead) (*headSeal, error) {
	t, err := s.count(ctx, b, k)
	if err != nil {
		return nil, err
	}
	if !t.matches() {
		_, now, err := s.readHead(ctx, b)
		if err == nil && now.same(k) {
			err = b.keyError(memory.Corrupt, "its head", noSeal)
		}
		if err == nil {
			err = memory.ErrConflict
		}
		return nil, err
	}
	p := *k.proof
	p.Before, p.Events, p.Chain = p.State.Last, t.events, t.chain
	return &p, nil
}

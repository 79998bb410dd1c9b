package encrypted

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
)

// sealName is the name of the value that holds the seal of a session's head. Every
// store can keep a value, reads it with the head and writes it with the change.
const sealName = "qtype.seal"

// digestSize is the size of a digest in bytes, the beginning of a SHA-256 hash.
const digestSize = 16

// headSeal is the content of the seal of a head. The encrypted seal is bound to the
// version too. Each change replaces it by one that follows from the last seal and
// the change alone, independent of the length of the history.
type headSeal struct {
	State   store.State       `json:"state"`            // of the head; whole, so that later versions may add fields
	Values  []digest          `json:"values,omitempty"` // of the named values, as encrypted
	Events  int64             `json:"events,omitempty"` // number of events
	Chain   []byte            `json:"chain,omitempty"`  // running hash of the events
	Before  int64             `json:"before,omitempty"` // Seq of the last message that was added before the session had a seal
	digests map[string][]byte // Values by name
}

// digest is the digest of a named value.
type digest struct {
	Name []byte `json:"name"` // any bytes
	Hash []byte `json:"hash"` // digestSize bytes
}

func digestOf(record []byte) []byte {
	sum := sha256.Sum256(record)
	return sum[:digestSize]
}

// chainHash returns the running hash of events after e, an encrypted event.
func chainHash(chain []byte, e *store.Event) ([]byte, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	// A store returns invalid UTF-8 as the replacement character.
	raw = bytes.ReplaceAll(raw, []byte(`\ufffd`), []byte("\ufffd"))
	h := sha256.New()
	h.Write(chain)
	h.Write(raw)
	return h.Sum(nil), nil
}

// after returns the seal after an encrypted change.
func (h *headSeal) after(c *store.Change) (*headSeal, error) {
	next := *h
	next.State = c.State
	var err error
	for i := range c.Events {
		if next.Chain, err = chainHash(next.Chain, &c.Events[i]); err != nil {
			return nil, err
		}
		next.Events++
	}
	if len(c.Values) > 0 {
		next.digests = maps.Clone(h.digests)
		if next.digests == nil {
			next.digests = map[string][]byte{}
		}
		for name, record := range c.Values {
			if record == nil {
				delete(next.digests, name)
			} else {
				next.digests[name] = digestOf(record)
			}
		}
	}
	return &next, nil
}

// encodeSeal returns the encrypted seal for a head of a version.
func (sc *sessionCipher) encodeSeal(version int64, h *headSeal) ([]byte, error) {
	out := *h
	out.Values = make([]digest, 0, len(h.digests))
	for name, hash := range h.digests {
		out.Values = append(out.Values, digest{Name: []byte(name), Hash: hash})
	}
	plain, err := json.Marshal(&out)
	if err != nil {
		return nil, err
	}
	return sc.encrypt(plain, lengthPrefixed(kindHead, numbers(version)))
}

func (sc *sessionCipher) openSeal(version int64, record []byte) (*headSeal, error) {
	plain, err := sc.decrypt(record, lengthPrefixed(kindHead, numbers(version)), headPart)
	if err != nil {
		return nil, err
	}
	h := &headSeal{}
	if err := json.Unmarshal(plain, h); err != nil {
		return nil, sc.error(store.Corrupt, headPart, "cannot read its seal: "+err.Error())
	}
	h.digests = make(map[string][]byte, len(h.Values))
	for _, v := range h.Values {
		h.digests[string(v.Name)] = v.Hash
	}
	h.Values = nil
	return h, nil
}

// checkHead compares a head, without the seal among its values, with its seal.
func (sc *sessionCipher) checkHead(head *store.Head, h *headSeal) error {
	if !sameState(head.State, h.State) {
		return sc.error(store.Corrupt, headPart, "the start of the window, or a count of messages, was modified after the session was sealed")
	}
	for name, record := range head.Values {
		switch hash, known := h.digests[name]; {
		case !known:
			return sc.error(store.Corrupt, valuePart(name), "added after the session was sealed")
		case !bytes.Equal(hash, digestOf(record)):
			return sc.error(store.Corrupt, valuePart(name), "modified after encryption, or replaced by an older value")
		}
	}
	for name := range h.digests {
		if _, exists := head.Values[name]; !exists {
			return sc.error(store.Corrupt, valuePart(name), "removed after the session was sealed")
		}
	}
	return nil
}

func sameState(a, b store.State) bool {
	same := a.LastSaid.Equal(b.LastSaid) && a.Expires.Equal(b.Expires)
	a.LastSaid, a.Expires = b.LastSaid, b.Expires
	return same && a == b
}

// unsealedHead returns the seal that a head without one would have had. The session
// was written by an early version of this package, or without encryption: records
// of a session with a seal have another format.
func (sc *sessionCipher) unsealedHead(head *store.Head) (*headSeal, error) {
	h := &headSeal{State: head.State, digests: make(map[string][]byte, len(head.Values))}
	for name, record := range head.Values {
		if formatOf(record) >= formatSealed {
			return nil, sc.error(store.Corrupt, headPart, noSeal)
		}
		h.digests[name] = digestOf(record)
	}
	return h, nil
}

const noSeal = "its seal was removed"

// headPart names a session's head in errors.
const headPart = "head"

// isSealedEvent reports whether an event was added to a session with a seal.
func isSealedEvent(e *store.Event) bool {
	text, encrypted := strings.CutPrefix(e.Reason, reasonPrefix)
	return encrypted && formatOf(decodeRecord(text)) >= formatSealed
}

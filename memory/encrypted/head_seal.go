package encrypted

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

// sealName names the value in which the seal of a session's head is kept, so
// that every store can keep it, reads it with the head and writes it with the change.
const sealName = "qtype.seal"

// printSize is how many bytes of a SHA-256 tell one record from another.
const printSize = 16

// headSeal is what the seal of a head says of the session. The seal is bound to the
// version as well, and made anew with every change: from the proof of the version
// before and the change alone, however much was said.
type headSeal struct {
	State  memory.State      `json:"state"`            // the head's; kept whole, so that later versions may add fields
	Values []digest          `json:"values,omitempty"` // the named values, each as it is kept
	Events int64             `json:"events,omitempty"` // how many there are
	Chain  []byte            `json:"chain,omitempty"`  // a running hash over them
	Before int64             `json:"before,omitempty"` // messages up to this place were said before heads had seals
	prints map[string][]byte // Values by name
}

// digest is the beginning of the hash of a named value's record.
type digest struct {
	Name []byte `json:"name"` // any bytes
	Hash []byte `json:"hash"` // printSize bytes
}

func digestOf(record []byte) []byte {
	sum := sha256.Sum256(record)
	return sum[:printSize]
}

// chainHash is the running hash over events after one more, as the store keeps it.
func chainHash(chain []byte, e *memory.Event) ([]byte, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	// What is no UTF-8 comes back from a store as the character that stands for it.
	raw = bytes.ReplaceAll(raw, []byte(`\ufffd`), []byte("\ufffd"))
	h := sha256.New()
	h.Write(chain)
	h.Write(raw)
	return h.Sum(nil), nil
}

// after is the proof once a change was made; the change is as the store keeps it.
func (p *headSeal) after(c *memory.Change) (*headSeal, error) {
	next := *p
	next.State = c.State
	var err error
	for i := range c.Events {
		if next.Chain, err = chainHash(next.Chain, &c.Events[i]); err != nil {
			return nil, err
		}
		next.Events++
	}
	if len(c.Values) > 0 {
		next.prints = maps.Clone(p.prints)
		if next.prints == nil {
			next.prints = map[string][]byte{}
		}
		for name, record := range c.Values {
			if record == nil {
				delete(next.prints, name)
			} else {
				next.prints[name] = digestOf(record)
			}
		}
	}
	return &next, nil
}

// sealProof is the value that a head of this version is kept with.
func (b *sessionCipher) sealProof(version int64, p *headSeal) ([]byte, error) {
	written := *p
	written.Values = make([]digest, 0, len(p.prints))
	for name, hash := range p.prints {
		written.Values = append(written.Values, digest{Name: []byte(name), Hash: hash})
	}
	plain, err := json.Marshal(&written)
	if err != nil {
		return nil, err
	}
	return b.seal(plain, lengthPrefixed(aboutHead, numbers(version)))
}

// openProof opens the seal of a head of this version.
func (b *sessionCipher) openProof(version int64, record []byte) (*headSeal, error) {
	plain, err := b.open(record, lengthPrefixed(aboutHead, numbers(version)), "its head")
	if err != nil {
		return nil, err
	}
	p := &headSeal{}
	if err := json.Unmarshal(plain, p); err != nil {
		return nil, b.keyError(memory.Corrupt, "its head", "its seal cannot be read: "+err.Error())
	}
	p.prints = make(map[string][]byte, len(p.Values))
	for _, v := range p.Values {
		p.prints[string(v.Name)] = v.Hash
	}
	p.Values = nil
	return p, nil
}

// check holds a head, whose seal was taken out of its values, against its proof.
func (b *sessionCipher) check(head *memory.Head, p *headSeal) error {
	if !sameState(head.State, p.State) {
		return b.keyError(memory.Corrupt, "its head", "where the window begins, or how much was said, was changed after it was sealed")
	}
	for name, record := range head.Values {
		switch hash, known := p.prints[name]; {
		case !known:
			return b.keyError(memory.Corrupt, valueNamed(name), "it was added after the session was sealed")
		case !bytes.Equal(hash, digestOf(record)):
			return b.keyError(memory.Corrupt, valueNamed(name), "it was changed after it was encrypted, or is an older one")
		}
	}
	for name := range p.prints {
		if _, held := head.Values[name]; !held {
			return b.keyError(memory.Corrupt, valueNamed(name), "it was removed after the session was sealed")
		}
	}
	return nil
}

func sameState(a, b memory.State) bool {
	same := a.LastSaid.Equal(b.LastSaid)
	a.LastSaid = b.LastSaid
	return same && a == b
}

// unsealedHead is what is known of a head that has no seal: that of a session which
// an earlier version of this package kept, or no encryption. One that was made
// with a seal has records that say so.
func (b *sessionCipher) unsealedHead(head *memory.Head) (*headSeal, error) {
	p := &headSeal{State: head.State, prints: make(map[string][]byte, len(head.Values))}
	for name, record := range head.Values {
		if format(record) >= formatCounted {
			return nil, b.keyError(memory.Corrupt, "its head", noSeal)
		}
		p.prints[name] = digestOf(record)
	}
	return p, nil
}

const noSeal = "its seal was taken away"

// isCounted tells whether an event's reason was sealed in a session whose head had a seal.
func isCounted(e *memory.Event) bool {
	text, sealed := strings.CutPrefix(e.Reason, reasonMark)
	return sealed && format(decoded(text)) >= formatCounted
}

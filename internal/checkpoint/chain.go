package checkpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
)

// chain authenticates the frames of a journal: a seal is the HMAC of all bytes since the last
// one and of that one, so that frames cannot be made, changed, moved or removed without the key, except at
// the end. Without a key it only finds damage.
type chain struct {
	mac  hash.Hash
	last []byte // the last seal; nil at the beginning of the file
}

func newChain(key []byte) *chain { return &chain{mac: hmac.New(sha256.New, key)} }

// add adds bytes of the file.
func (c *chain) add(b []byte) { _, _ = c.mac.Write(b) } // never returns an error

// seal ends a part of the file and returns its seal.
func (c *chain) seal() []byte {
	c.add(c.last)
	c.last = c.mac.Sum(nil)
	c.mac.Reset()
	return c.last
}

// appendSealed appends frames and the frame with their seal to b.
func (c *chain) appendSealed(b, frames []byte) []byte {
	c.add(frames)
	return append(append(b, frames...), frame(kindSeal, c.seal())...)
}

// reset forgets what was added since the last seal.
func (c *chain) reset() { c.mac.Reset() }

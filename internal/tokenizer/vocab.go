package tokenizer

import (
	"fmt"
	"math/bits"
)

// none is the rank of bytes that are not a token.
const none = ^uint32(0)

// A vocabulary maps tokens to their ranks. It is a hash table with open addressing and
// without pointers, so that the garbage collector does not scan it. It is immutable
// after loading.
type vocabulary struct {
	slots   []slot // a power of two, at most half of them used
	shift   uint   // from a hash to the index of its slot
	content string // the file of the vocabulary, which has all tokens
	longest int    // length of the longest token, in bytes

	// pairs holds, for every two bytes, the rank of their token plus 1, or 0. It
	// replaces the searches of the first round of a merge, a third of the time for
	// CJK text.
	pairs [1 << 16]uint32
}

// A slot is a token packed in eight bytes; offset is 0 if it is empty.
type slot struct {
	offset uint32 // of the token in the content; the lowest 8 bits are its length
	rank   uint32 // the lowest tagBits bits are a part of its hash
}

const (
	lengthBits = 8 // as many as the length of a token has in the file
	tagBits    = 14
	tagMask    = 1<<tagBits - 1

	maxLength = 1<<lengthBits - 1
	maxBytes  = 1 << (32 - lengthBits)
	maxTokens = 1 << (32 - tagBits)
)

// newVocabulary returns an empty vocabulary for a number of tokens of the content of a file.
func newVocabulary(content string, tokens int) *vocabulary {
	size := uint(bits.Len(uint(2*tokens - 1)))
	return &vocabulary{slots: make([]slot, 1<<size), shift: 64 - size, content: content}
}

// add adds the token at an offset of the content, which is not 0.
func (v *vocabulary) add(offset, length int, rank uint32) error {
	switch {
	case offset+length > len(v.content):
		return fmt.Errorf("the token of rank %d is cut off", rank)
	case rank >= maxTokens:
		return fmt.Errorf("rank %d is not below %d", rank, maxTokens)
	}
	token := v.content[offset : offset+length]
	v.longest = max(v.longest, length)
	if length == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = rank + 1
	}
	h := hash(token)
	i := h >> v.shift
	for v.slots[i].offset != 0 {
		i = (i + 1) & uint64(len(v.slots)-1)
	}
	v.slots[i] = slot{
		offset: uint32(offset<<lengthBits | length),
		rank:   rank<<tagBits | uint32(h&tagMask),
	}
	return nil
}

// pair returns the rank of the token of two bytes, or none (0 minus 1).
func (v *vocabulary) pair(first, second byte) uint32 {
	return v.pairs[int(first)<<8|int(second)] - 1
}

// rank returns the rank of s, or none if s is not a token.
func (v *vocabulary) rank(s string) uint32 {
	if len(s) > v.longest {
		return none
	}
	h := hash(s)
	for i := h >> v.shift; ; i = (i + 1) & uint64(len(v.slots)-1) {
		slot := v.slots[i]
		if slot.offset == 0 {
			return none
		}
		if slot.rank&tagMask != uint32(h&tagMask) || slot.offset&maxLength != uint32(len(s)) {
			continue
		}
		start := slot.offset >> lengthBits
		if v.content[start:start+uint32(len(s))] == s {
			return slot.rank >> tagBits
		}
	}
}

// hash returns a hash of s, which must not be empty. The table is fixed, so an
// adversarial text can at most walk the longest chain.
func hash(s string) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	n := len(s)
	h := uint64(n)
	for len(s) > 8 {
		h = mix(h^word64(s), odd)
		s = s[8:]
	}
	var last uint64
	switch m := len(s); {
	case m == 8:
		last = word64(s)
	case m >= 4:
		last = uint64(word32(s)) | uint64(word32(s[m-4:]))<<32
	default:
		last = uint64(s[0]) | uint64(s[m/2])<<8 | uint64(s[m-1])<<16
	}
	return mix(h^last, odd)
}

// mix multiplies and xors the two halves of the product.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// word64 returns the first eight bytes of s as a number.
func word64(s string) uint64 {
	return uint64(word32(s)) | uint64(word32(s[4:]))<<32
}

// word32 returns the first four bytes of s as a number.
func word32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

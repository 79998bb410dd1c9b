package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

// rememberedBits is the number of bits of a count in a remembered slot, and of the number of a slot.
const rememberedBits = 18

// remembered are the tokens of texts that were counted, by their hashes: each slot has the last text
// whose hash ends with its number, as the rest of the hash and the count. A text therefore has the
// count of another one only if all 64 bits of both hashes are equal. It takes 2 MiB.
type remembered struct {
	seed  maphash.Seed
	slots [1 << rememberedBits]atomic.Uint64 // 0 for none: texts have at least one token
}

// CountOnce returns the number of tokens in text, as Count does, and remembers that of its parts for texts that
// are counted again with each call of a model, such as the messages of a conversation and lists of them.
func (e *Encoding) CountOnce(text string) (n int) {
	for text != "" {
		end := partEnd(text)
		n += e.countPart(text[:end])
		text = text[end:]
	}
	return n
}

// minPart is the least number of bytes of a part whose tokens are remembered.
const minPart = 64

// partEnd returns the end of the first lines of a text: no token of an encoding has an end of line between visible
// characters and the second of these, unless that is a slash.
func partEnd(text string) int {
	for i := minPart; i < len(text); i++ {
		if text[i-1] == '\n' && isVisible(text[i-2]) && isVisible(text[i]) && text[i] != '/' {
			return i
		}
	}
	return len(text)
}

func isVisible(b byte) bool { return '!' <= b && b <= '~' }

func (e *Encoding) countPart(text string) int {
	known := e.known()
	const countMask = 1<<rememberedBits - 1
	hash := maphash.String(known.seed, text)
	slot := &known.slots[hash&countMask]
	if was := slot.Load(); was != 0 && was&^countMask == hash&^countMask {
		return int(was & countMask)
	}
	n := e.Count(text)
	if 0 < n && n <= countMask {
		slot.Store(hash&^countMask | uint64(n))
	}
	return n
}

// known returns the remembered counts, which it makes by the first use.
func (e *Encoding) known() *remembered {
	if known := e.remembered.Load(); known != nil {
		return known
	}
	e.remembered.CompareAndSwap(nil, &remembered{seed: maphash.MakeSeed()})
	return e.remembered.Load()
}

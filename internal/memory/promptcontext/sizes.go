package promptcontext

import "sync"

// maxSizedBytes is the most bytes of the texts whose sizes one context keeps.
const maxSizedBytes = 1 << 20

// sizeCache has the tokens of texts that were sent lately: most are sent again with the next calls.
type sizeCache struct {
	mu     sync.Mutex
	tokens map[sizedText]int
	bytes  int
}

// sizedText is a text as the counter of a memory counts it.
type sizedText struct{ memory, text string }

// of returns the tokens of a text. It counts those that it does not have.
func (c *sizeCache) of(memory, text string, count func() int) int {
	key := sizedText{memory, text}
	c.mu.Lock()
	n, known := c.tokens[key]
	c.mu.Unlock()
	if known {
		return n
	}
	n = count()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(text); c.tokens == nil || c.bytes > maxSizedBytes {
		c.tokens, c.bytes = map[sizedText]int{}, len(text)
	}
	c.tokens[key] = n
	return n
}

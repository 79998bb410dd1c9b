//go:build !race

// With -race a sync.Pool drops objects at random.

package tokenizer_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

func TestCount_NoAllocations(t *testing.T) {
	e := encoding(t, tokenizer.O200k)
	for _, text := range []string{"hello world, it's a fine day", "東京タワーへ行きましょう", strings.Repeat("ab", 30), strings.Repeat("ab", 2000)} {
		e.Count(text)
		if n := testing.AllocsPerRun(100, func() { e.Count(text) }); n >= 1 {
			t.Errorf("%v allocations for %d bytes of %.20q", n, len(text), text)
		}
	}
}

package tokenizer_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// TestCountOnce checks that remembered counts are those of Count.
func TestCountOnce(t *testing.T) {
	enc, err := tokenizer.For(tokenizer.R50k)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"", "a", "\xff\xfe", "hello world", strings.Repeat("x ", 300_000)}
	for i := range 2000 {
		texts = append(texts, strings.Repeat("some words ", i%17)+string(rune('a'+i%26))+strings.Repeat("é", i%5))
	}
	for range 2 {
		for _, text := range texts {
			if got, want := enc.CountOnce(text), enc.Count(text); got != want {
				t.Fatalf("a text of %d bytes has %d tokens, want %d", len(text), got, want)
			}
		}
	}
}

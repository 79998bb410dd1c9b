package tokenizer_test

import (
	"math/rand/v2"
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

// TestCountOnce_Lines compares texts of all encodings that are counted in parts: lines that begin and end with
// every kind of character.
func TestCountOnce_Lines(t *testing.T) {
	pieces := []string{"\n", "\n", "\n\n", "\r\n", "\n", " ", "\t", "\u00a0", "/", "/a", "-", "- x", "!", "...", "'s", "'S", "A", "word", "Word", "42", "é", "中", "🙂", "\xff", "# ", "|", "~", "\x7f", "<|endoftext|>"}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range distinct {
		e := encoding(t, name)
		for range 4000 {
			text := strings.Repeat("some words ", r.IntN(8))
			for range r.IntN(60) {
				text += pieces[r.IntN(len(pieces))]
			}
			if got, want := e.CountOnce(text), e.Count(text); got != want {
				t.Fatalf("%s: %q has %d tokens, want %d", name, text, got, want)
			}
		}
	}
}

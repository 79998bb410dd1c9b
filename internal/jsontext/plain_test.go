package jsontext_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/jsontext"
)

// plain is Plain, one byte at a time.
func plain(s string) int {
	at := 0
	for at < len(s) && s[at] >= ' ' && s[at] < 0x7f && s[at] != '"' && s[at] != '\\' {
		at++
	}
	return at
}

func TestPlain_EveryByteAtEveryPlace(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for first := range 256 {
				for _, second := range []byte{'a', '"', 0x1f, 0x80} {
					b := []byte(strings.Repeat("~", length))
					b[at] = byte(first)
					if at+1 < length {
						b[at+1] = second
					}
					if got, want := jsontext.Plain(string(b)), plain(string(b)); got != want {
						t.Fatalf("%q: %d, want %d", b, got, want)
					}
				}
			}
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("many words")
	f.Add("a quote \" after the first word of eight bytes")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := jsontext.Plain(s), plain(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	s := strings.Repeat("many words ", 20)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		jsontext.Plain(s)
	}
}

package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// patterns are those of the encodings, for the engine that tiktoken-go uses. A wrong
// split need not change the count, so the pieces are compared too.
var patterns = map[string]string{
	tokenizer.O200k: strings.Join([]string{
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`,
	}, "|"),
	tokenizer.Cl100k: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	tokenizer.R50k:   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
}

// samePieces returns a function that compares the pieces of a text with those of the
// pattern.
func samePieces(t *testing.T, name string) func(text string) {
	pattern, e := regexp2.MustCompile(patterns[name], regexp2.None), encoding(t, name)
	return func(text string) {
		if t.Failed() || !utf8.ValidString(text) {
			return
		}
		var want []string
		for m, err := pattern.FindStringMatch(text); m != nil; m, err = pattern.FindNextMatch(m) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, m.String())
		}
		if got := e.Pieces(text); !slices.Equal(got, want) {
			t.Errorf("pieces of %+.300q:\n got %+.300q\nwant %+.300q", text, got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	for name := range patterns {
		t.Run(name, func(t *testing.T) {
			same := samePieces(t, name)
			for _, text := range texts {
				same(text)
			}
			for rng, i := rand.New(rand.NewPCG(3, 4)), 0; i < 300; i++ {
				same(randomText(rng))
			}
		})
	}
}

func TestPieces_ShortStrings(t *testing.T) {
	testkit.SkipWithRace(t)
	for name, alphabet := range map[string]string{
		tokenizer.O200k:  "aAかǅ\u0301 \n\r'/1s!\u3000",
		tokenizer.Cl100k: "aSか\u0301 \n\r't1!\u00a0",
		tokenizer.R50k:   "aSか\u0301 \n\t't1!\u2003",
	} {
		t.Run(name, func(t *testing.T) {
			same := samePieces(t, name)
			var walk func(text []rune)
			walk = func(text []rune) {
				same(string(text))
				for _, char := range alphabet {
					if len(text) < 4 {
						walk(append(text, char))
					}
				}
			}
			walk(nil)
		})
	}
}

// TestPieces_EveryCharacter checks the class of every character.
func TestPieces_EveryCharacter(t *testing.T) {
	testkit.SkipWithRace(t)
	last := rune(unicode.MaxRune)
	if testing.Short() {
		last = 0x3400
	}
	for name := range patterns {
		t.Run(name, func(t *testing.T) {
			same := samePieces(t, name)
			for char := rune(0); char <= last; char++ {
				if char < 0x3400 || char%64 == 0 || unicode.In(char, unicode.Lu, unicode.Lt, unicode.Lm, unicode.M, unicode.N) {
					same(fmt.Sprintf("a%cB%cA %c\n %c1%c'%cs'S%c  %c%cAb", char, char, char, char, char, char, char, char, char))
				}
			}
		})
	}
}

package tokenizer_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// reference returns tiktoken-go's encoding.
func reference(t testing.TB, encoding string) *tiktoken.Tiktoken {
	t.Helper()
	references.Lock()
	defer references.Unlock()
	if references.loaded == nil {
		tiktoken.SetBpeLoader(loader.NewOfflineLoader())
		references.loaded = map[string]*tiktoken.Tiktoken{}
	}
	if references.loaded[encoding] == nil {
		r, err := tiktoken.GetEncoding(encoding)
		if err != nil {
			t.Fatal(err)
		}
		references.loaded[encoding] = r
	}
	return references.loaded[encoding]
}

// references caches tiktoken-go's encodings, which are slow to load.
var references struct {
	sync.Mutex
	loaded map[string]*tiktoken.Tiktoken
}

func encoding(t testing.TB, name string) *tokenizer.Encoding {
	t.Helper()
	e, err := tokenizer.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// same compares the count of a text with that of tiktoken-go.
func same(t interface {
	Helper()
	Errorf(string, ...any)
}, e *tokenizer.Encoding, r *tiktoken.Tiktoken, text string) {
	t.Helper()
	tokens := r.EncodeOrdinary(text)
	if got := e.Count(text); got != len(tokens) {
		parts := make([]string, 0, 40)
		for _, id := range tokens[:min(len(tokens), 40)] {
			parts = append(parts, r.Decode([]int{id}))
		}
		t.Errorf("%s: Count(%+q) = %d, want %d: %+q", e.Name(), text[:min(len(text), 200)], got, len(tokens), parts)
	}
}

// distinct lists the encodings whose counts differ.
var distinct = []string{tokenizer.O200k, tokenizer.Cl100k, tokenizer.P50k, tokenizer.R50k}

func TestCount_MatchesTiktoken(t *testing.T) {
	for _, name := range tokenizer.Names() {
		e, r := encoding(t, name), reference(t, name)
		t.Run(name, func(t *testing.T) {
			for _, text := range texts {
				same(t, e, r, text)
			}
		})
	}
}

// TestCount_Known detects a change of both implementations.
func TestCount_Known(t *testing.T) {
	const text = "hello world, it's 12345 tokens… \n\n 東京タワー 👩‍👩‍👧 <|endoftext|>"
	for name, want := range map[string]int{tokenizer.O200k: 29, tokenizer.Cl100k: 36, tokenizer.P50k: 36, tokenizer.R50k: 36} {
		if got := encoding(t, name).Count(text); got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
	}
}

func TestCount_ShortStrings(t *testing.T) {
	testkit.SkipWithRace(t)
	for name, alphabet := range map[string]string{
		tokenizer.O200k:  "aAかǅ\u0301 \n'/1s!",
		tokenizer.Cl100k: "aSか\u0301 \n\r't1!\u00a0",
		tokenizer.R50k:   "aSか\u0301 \n\t't1!\u2003",
	} {
		e, r := encoding(t, name), reference(t, name)
		t.Run(name, func(t *testing.T) {
			symbols := []rune(alphabet)
			var walk func(text []rune)
			walk = func(text []rune) {
				same(t, e, r, string(text))
				if len(text) == 4 || t.Failed() {
					return
				}
				for _, s := range symbols {
					walk(append(text, s))
				}
			}
			walk(nil)
		})
	}
}

func TestCount_Property(t *testing.T) {
	runes := rapid.RuneFrom([]rune("etaoinshrdlu'sTMLVRE  \n\r\t/0189.,;!?({[<|>]})_-=+*&^%$#@~`\"\\"),
		unicode.Lu, unicode.Ll, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M, unicode.N, unicode.Z, unicode.Cc, unicode.Cf, unicode.S, unicode.P)
	text := rapid.OneOf(rapid.StringOf(runes), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	for _, name := range distinct {
		e, r := encoding(t, name), reference(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { same(t, e, r, text.Draw(t, "text")) })
		})
	}
}

// TestCount_RandomTexts uses texts longer than rapid's, for pieces that are merged by a
// scan and by a heap.
func TestCount_RandomTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range distinct {
		e, r := encoding(t, name), reference(t, name)
		t.Run(name, func(t *testing.T) {
			for range 300 {
				same(t, e, r, randomText(rng))
			}
		})
	}
}

// randomText returns runs of characters that are close in Unicode.
func randomText(rng *rand.Rand) string {
	bases := []rune{'A', 'a', 'a', 'a', ' ', '0', '!', 0xC0, 0x300, 0x391, 0x410, 0x5D0, 0x627, 0x905, 0xE01, 0x1100, 0x2000, 0x2190, 0x3041, 0x4E00, 0x4E00, 0xAC00, 0xFF21, 0x10400, 0x1F600}
	var b strings.Builder
	for range 1 + rng.IntN(8) {
		base, span := bases[rng.IntN(len(bases))], 1+rng.IntN(40)
		for range rng.IntN(120) {
			b.WriteRune(base + rune(rng.IntN(span)))
		}
		b.WriteString([]string{"", " ", "\n", "'s", "\xff", "  \n "}[rng.IntN(6)])
	}
	return b.String()
}

// tiktokenModels returns tiktoken-go's encodings by model.
func tiktokenModels() map[string]string { return tiktoken.MODEL_TO_ENCODING }

package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// TestChunks_MatchWhole checks that a piece has the same count in chunks of any size as
// merged whole, including pieces whose chunks have no token in common.
func TestChunks_MatchWhole(t *testing.T) {
	alphabets := []string{"a", "ab", "aab ", " \n", "\n\r\t ", "日か", "é̀", "😀👩‍🏽", "abcdefghijklmnopqrstuvwxyz", "etaoin", "=-_*#", "0123456789", "ABCDEFabcdef0123456789+/", "\xff\x80ab"}
	for _, name := range distinct {
		e, joined, apart := encoding(t, name), 0, 0
		rapid.Check(t, func(t *rapid.T) {
			alphabet := rapid.SampledFrom(alphabets).Draw(t, "alphabet")
			unit := rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 1, 60, -1).Draw(t, "unit")
			text := strings.Repeat(unit, rapid.IntRange(1, 40).Draw(t, "times")) + rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 0, 200, -1).Draw(t, "rest")
			length := rapid.IntRange(2, 200).Draw(t, "length")
			overlap := rapid.IntRange(1, length).Draw(t, "overlap")
			if got, want := e.Chunked(text, length, overlap), e.Chunked(text, len(text), 0); got != want {
				t.Fatalf("%s: %d tokens in chunks of %d that overlap by %d, %d in one, of %q", name, got, length, overlap, want, text)
			}
			if len(text) > length && e.Joined(text, length, overlap) {
				joined++
			} else if len(text) > length {
				apart++
			}
		})
		if joined == 0 || apart == 0 {
			t.Errorf("%s: %d pieces in chunks, %d merged whole: both should occur", name, joined, apart)
		}
	}
}

// TestCount_AnyVocabulary compares counts with those of a simple algorithm, for any
// order of ranks.
func TestCount_AnyVocabulary(t *testing.T) {
	testkit.SkipWithRace(t)
	random := rand.New(rand.NewPCG(5, 6))
	for range 120 {
		letters := []string{"ab", "abc", "abcdef"}[random.IntN(3)]
		e := drawVocabulary(t, random, letters, 4+random.IntN(60))
		for range 3 {
			text := make([]byte, 100+random.IntN(900))
			for i := range text {
				text[i] = letters[random.IntN(len(letters))]
			}
			piece := string(text)
			want := e.Plain(piece)
			if got := e.Chunked(piece, len(piece), 0); got != want {
				t.Fatalf("%d tokens, want %d, of %s", got, want, piece)
			}
			length := 10 + random.IntN(60)
			if got := e.Chunked(piece, length, 1+random.IntN(9)); got != want {
				t.Fatalf("%d tokens in chunks of %d, want %d, of %s", got, length, want, piece)
			}
		}
	}
}

// drawVocabulary returns n tokens of letters, with ranks in random order.
func drawVocabulary(t *testing.T, random *rand.Rand, letters string, n int) *tokenizer.Encoding {
	t.Helper()
	tokens := strings.Split(letters, "")
	for len(tokens) < n+len(letters) {
		next := tokens[random.IntN(len(tokens))] + tokens[random.IntN(len(tokens))]
		if len(next) > 30 {
			next = next[:2]
		}
		if slices.Contains(tokens, next) {
			next = letters[:1] + next + fmt.Sprint(len(tokens)) // occurs in no text
		}
		tokens = append(tokens, next)
	}
	random.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
	var content strings.Builder
	apart := 1 + 1023*random.IntN(2) // sometimes ranks with equal lowest bits
	for _, one := range tokens {
		content.WriteByte(byte(len(one)))
		content.WriteString(one)
		content.Write(make([]byte, apart-1))
	}
	e, err := tokenizer.Read(content.String(), len(tokens))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCount_LongPieces compares pieces that are long enough for runs of pairs with
// tiktoken-go.
func TestCount_LongPieces(t *testing.T) {
	testkit.SkipWithRace(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, name := range distinct {
		e, r := encoding(t, name), reference(t, name)
		for _, alphabet := range []string{"a", "ab", "aeinrst", "abcdefghijklmnopqrstuvwxyz", "日本語か", " ", "=-"} {
			letters := []rune(alphabet)
			var text strings.Builder
			for range 700 + random.IntN(900) {
				text.WriteRune(letters[random.IntN(len(letters))])
			}
			same(t, e, r, text.String())
		}
	}
}

// hugePieces returns pieces of about 100,000 bytes.
func hugePieces() map[string]string {
	random := rand.New(rand.NewPCG(1, 2))
	letters, words := make([]byte, 100_000), strings.Builder{}
	for i := range letters {
		letters[i] = byte('a' + random.IntN(26))
	}
	for words.Len() < 100_000 {
		words.WriteString([]string{"merge", "token", "chunk", "aaaa", "th", "e", "pneumono", "日本", "語"}[random.IntN(9)])
	}
	return map[string]string{
		"a": strings.Repeat("a", 100_001), "ab": strings.Repeat("ab", 50_000), "blanks": strings.Repeat(" ", 100_000), "line ends": strings.Repeat("\n", 100_000),
		"signs": strings.Repeat("=", 100_000), "日": strings.Repeat("日", 33_000), "emoji": strings.Repeat("😀", 25_000),
		"letters": string(letters), "words": words.String(), "invalid": strings.Repeat("\xff", 33_000),
	}
}

// TestCount_HugePieces is TestChunks_MatchWhole with the chunks of Count.
func TestCount_HugePieces(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, name := range distinct {
		e := encoding(t, name)
		for what, text := range hugePieces() {
			want := 0
			for _, piece := range e.Pieces(strings.ToValidUTF8(text, "\ufffd")) {
				want += e.Chunked(piece, len(piece), 0)
				if !e.Joined(piece, tokenizer.ChunkLength, tokenizer.ChunkOverlap) {
					t.Errorf("%s: the chunks of %s have no token in common", name, what)
				}
			}
			if what == "invalid" {
				want = e.Count(strings.Repeat("\ufffd", len(text)))
			}
			if got := e.Count(text); got != want {
				t.Errorf("%s: %s has %d tokens, want %d", name, what, got, want)
			}
		}
	}
}

// TestCount_HugePiecesMemory checks that memory does not grow with a piece.
func TestCount_HugePiecesMemory(t *testing.T) {
	testkit.SkipWithRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty the pool
	e := encoding(t, tokenizer.O200k)
	for what, text := range hugePieces() {
		if what == "invalid" {
			continue // a copy
		}
		text = strings.Repeat(text, 10)
		e.Count(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e.Count(text)
		runtime.ReadMemStats(&after)
		// Under the race detector the pool drops about 1.5 MiB at random.
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("%s: %d bytes for %d bytes of text", what, took, len(text))
		}
	}
}

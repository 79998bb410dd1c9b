// Package tokenizer counts the tokens of a text as OpenAI's byte pair encodings do,
// exactly and offline: the vocabularies are embedded in the program.
//
// A count equals the length of the result of EncodeOrdinary of tiktoken-go, for every
// text: the names of special tokens, such as <|endoftext|>, are ordinary text, and
// each byte that is not UTF-8 counts as U+FFFD. OpenAI's tiktoken differs from
// tiktoken-go in two respects: it treats 'ſ (U+017F, long s) as a contraction, and
// characters that are newer than Go's Unicode tables as letters.
package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Names of encodings.
const (
	// O200k is the encoding of gpt-4o, gpt-4.1, gpt-5 and the o series.
	O200k = "o200k_base"
	// Cl100k is the encoding of gpt-4, gpt-3.5-turbo and the embedding models.
	Cl100k = "cl100k_base"
	// P50k is the encoding of text-davinci-003 and of the code models.
	P50k = "p50k_base"
	// P50kEdit is the encoding of the edit models. It has the same counts as P50k.
	P50kEdit = "p50k_edit"
	// R50k is the encoding of GPT-2 and the first GPT-3 models.
	R50k = "r50k_base"
)

// A Counter counts the tokens of a text. *Encoding implements it; other
// implementations may estimate models whose tokenizer is not public.
type Counter interface {
	// Count returns the number of tokens in text.
	Count(text string) int
}

// An Encoding is a loaded byte pair encoding. It is safe for concurrent use.
type Encoding struct {
	name    string
	split   splitter
	classes *classes
	tokens  *vocabulary // nil in a browser that has not loaded it

	remembered atomic.Pointer[remembered] // by CountOnce
}

// For returns the encoding of a name. The first call for a name loads its vocabulary
// (O200k: about 6 ms and 4.3 MiB, Cl100k half of that, the others a quarter); later
// ones return the same value. It is safe for concurrent use.
func For(encoding string) (*Encoding, error) {
	for i := range encodings {
		if encodings[i].name == encoding {
			return encodings[i].get()
		}
	}
	return nil, fmt.Errorf("unknown token encoding %q (known: %s)", encoding, strings.Join(Names(), ", "))
}

// Names returns the names of all encodings, newest first.
func Names() []string {
	names := make([]string, len(encodings))
	for i := range encodings {
		names[i] = encodings[i].name
	}
	return names
}

// Name returns the name of the encoding.
func (e *Encoding) Name() string { return e.name }

// Count returns the number of tokens in text, in linear time. It allocates only if
// the text has invalid UTF-8 (a copy). Long runs without a boundary are merged in
// chunks of 16 KiB, regardless of their length. There is no cache of pieces: most are
// tokens, and looking them up in the vocabulary is as fast.
func (e *Encoding) Count(text string) int {
	if !utf8.ValidString(text) {
		text = replaceInvalid(text)
	}
	n := 0
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		n += e.tokens.count(text[i:end])
		i = end
	}
	return n
}

// replaceInvalid replaces each invalid byte by U+FFFD. (strings.ToValidUTF8 would
// replace a run of them by one.)
func replaceInvalid(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for _, char := range text {
		b.WriteRune(char)
	}
	return b.String()
}

// A lazyEncoding is an encoding that is loaded by its first use.
type lazyEncoding struct {
	name  string
	file  string // of the vocabulary
	size  int    // of the vocabulary, in tokens
	split splitter

	once     sync.Once // not used in a browser
	encoding *Encoding
	err      error
}

// encodings holds all encodings, newest first.
var encodings = [...]lazyEncoding{
	{name: O200k, file: "o200k_base.tokens", size: 199998, split: splitO200k},
	{name: Cl100k, file: "cl100k_base.tokens", size: 100256, split: splitCl100k},
	{name: P50k, file: "p50k_base.tokens", size: 50280, split: splitGPT3},
	{name: P50kEdit, file: "p50k_base.tokens", size: 50280, split: splitGPT3},
	{name: R50k, file: "p50k_base.tokens", size: 50256, split: splitGPT3},
}

// with returns the encoding with a vocabulary, or with estimates for nil.
func (l *lazyEncoding) with(v *vocabulary) *Encoding {
	return &Encoding{name: l.name, split: l.split, classes: unicodeClasses(), tokens: v}
}

// estimate returns about how many tokens a piece has: words of up to six letters are
// mostly one token in the languages of the vocabularies, characters of other scripts a
// token for each two.
func estimate(piece string) int {
	runes := utf8.RuneCountInString(piece)
	if runes == len(piece) {
		return 1 + (runes-1)/7
	}
	return max(1, (len(piece)+2)/5)
}

// readVocabulary reads the first tokens of a vocabulary, whose form package vocabularies describes. The content is kept.
func readVocabulary(content string, tokens int) (*vocabulary, error) {
	if len(content) > maxBytes {
		return nil, fmt.Errorf("%d bytes are more than %d", len(content), maxBytes)
	}
	v := newVocabulary(content, tokens)
	at, rank := 0, uint32(0)
	for n := 0; n < tokens; rank++ {
		if at == len(content) {
			return nil, fmt.Errorf("found %d tokens, want %d", n, tokens)
		}
		length := int(content[at])
		at++
		if length == 0 {
			continue
		}
		if err := v.add(at, length, rank); err != nil {
			return nil, err
		}
		at += length
		n++
	}
	return v, nil
}

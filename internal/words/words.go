// Package words splits texts into the words that full-text searches compare.
package words

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// maxTerm is the number of bytes of a term; longer words are cut.
const maxTerm = 128

// Token is a word of a text.
type Token struct {
	Term       string // as it is indexed: lower case, without accents
	Start, End int    // its place in the text, in bytes
}

// All returns the words of a text: sequences of letters, marks and digits. Each
// character of a script without spaces, and each symbol such as an emoji, is a word.
func All(text string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for i := 0; i < len(text); {
			end, word := nextToken(text, i)
			if word {
				if term := Normalize(text[i:end]); term != "" && !yield(Token{term, i, end}) {
					return
				}
			}
			i = end
		}
	}
}

// nextToken returns the end of the word or the separator at a place.
func nextToken(text string, i int) (end int, word bool) {
	r, size := utf8.DecodeRuneInString(text[i:])
	end = i + size
	switch {
	case r == utf8.RuneError:
		return end, false
	case IsOneWord(r):
		return end, true
	case !inWord(r):
		return end, false
	}
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !inWord(r) || IsOneWord(r) {
			break
		}
		end += size
	}
	return end, true
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.IsNumber(r))
}

// IsOneWord reports whether a character is a word by itself: of scripts that do not separate
// words by spaces, and symbols.
func IsOneWord(r rune) bool {
	if r < 0xa0 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.IsMark(r) ||
		unicode.Is(unicode.So, r)
}

// Normalize returns the form of a word that is indexed. It has no characters that separate
// words in FTS5's tokenizer ascii: of ASCII, only letters and digits.
func Normalize(word string) string {
	ascii := true
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		word = simplify(word)
	}
	word = strings.ToLower(word)
	if len(word) <= maxTerm {
		return word
	}
	return word[:textfmt.Boundary(word, maxTerm)]
}

// simplify removes accents and the variants of characters.
func simplify(word string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(word) {
		if inWord(r) && !unicode.Is(unicode.Mn, r) || IsOneWord(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return norm.NFC.String(b.String())
}

package remote

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of words and of the texts of queries.
const (
	maxQuery = 32 << 10 // bytes that are searched
	maxWords = 256      // different words
	maxWord  = 512      // bytes
)

// isSeparator reports whether a character is not part of a word.
func isSeparator(c rune) bool {
	return !unicode.In(c, unicode.Letter, unicode.Number, unicode.Mark)
}

// isWord reports whether a character is a separate word, as in scripts without spaces.
func isWord(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// nextWord returns the place of the first word from a place on.
func nextWord(text string, at int) (start, end int) {
	start = len(text)
	for i, c := range text[at:] {
		switch i += at; {
		case isSeparator(c):
			if start < i {
				return start, i
			}
		case isWord(c):
			if start < i {
				return start, i
			}
			return i, i + utf8.RuneLen(c)
		case start == len(text):
			start = i
		}
	}
	return start, len(text)
}

// splitWords calls yield for the words of a text in lower case. Servers end words only at
// some characters: Redis not at the ends of lines, and none in scripts without spaces. So
// they get these words.
func splitWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); {
			start, end := nextWord(text, at)
			if start < end && end-start <= maxWord && !yield(strings.ToLower(text[start:end])) {
				return
			}
			at = end
		}
	}
}

// IndexedWords returns the words of a text with spaces between them.
func IndexedWords(text string) string {
	return strings.Join(slices.Collect(splitWords(strings.ToValidUTF8(text, " "))), " ")
}

// QueryWords returns the words of a text, which have no character with a meaning in
// queries, each once.
func QueryWords(text string) []string {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	var words []string
	seen := map[string]bool{}
	for word := range splitWords(strings.ToValidUTF8(text, " ")) {
		if !seen[word] && len(words) < maxWords {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// Bounds of highlights.
const (
	maxHighlights = 3
	contextBytes  = 60 // before and after a word
)

// Highlights returns the passages of a text around words, which are between **. Other
// forms of a word, which the server finds too, are not marked.
func Highlights(text string, words []string) []string {
	wanted := make(map[string]bool, len(words))
	for _, word := range words {
		wanted[word] = true
	}
	var passages []string
	for at := 0; at < len(text) && len(passages) < maxHighlights; {
		start, end := nextWord(text, at)
		if wanted[strings.ToLower(text[start:end])] {
			from := start - wholeWords(text[max(at, start-contextBytes):start])
			to := end + max(0, strings.LastIndexFunc(text[end:min(len(text), end+contextBytes)], isSeparator))
			passages = append(passages, marked(text[from:to], wanted))
			end = to
		}
		at = max(end, at+1)
	}
	return passages
}

// wholeWords returns the length of the part of a text after its first separator: a whole
// number of words.
func wholeWords(text string) int {
	first := strings.IndexFunc(text, isSeparator)
	if first < 0 {
		return 0
	}
	return len(text) - first
}

// marked returns a passage in one line with ** around the words.
func marked(text string, wanted map[string]bool) string {
	var b strings.Builder
	for at := 0; at < len(text); {
		start, end := nextWord(text, at)
		b.WriteString(text[at:start])
		if word := text[start:end]; wanted[strings.ToLower(word)] {
			b.WriteString("**" + word + "**")
		} else {
			b.WriteString(word)
		}
		at = end
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

package ranking

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/words"
)

const (
	maxTextBytes  = 64 << 10 // of a message whose words are found
	maxQueryBytes = 8 << 10  // of a query
	maxQueryTerms = 64
	maxNameBytes  = 256 // of an author whose words are found; each passage has them
)

// isStopWord reports whether a word is one of the English words that are left out of queries
// that have others.
func isStopWord(word string) bool {
	switch word {
	case "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "d", "did", "do",
		"does", "doing", "for", "from", "had", "has", "have", "having", "he", "her", "hers", "him", "his", "how",
		"i", "if", "in", "into", "is", "it", "its", "itself", "just", "ll", "m", "me", "my", "of", "on", "or",
		"our", "re", "s", "she", "should", "so", "some", "t", "than", "that", "the", "their", "them", "then",
		"there", "these", "they", "this", "those", "to", "too", "up", "ve", "was", "we", "were", "what", "when",
		"where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours":
		return true
	}
	return false
}

// passageWords yields the words of a passage.
func passageWords(p Passage) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range words.All(cut(p.String(), maxTextBytes)) {
			if !yield(t.Term) {
				return
			}
		}
	}
}

// queryTerms returns the words of a query and the stems to find: those of its stop words
// only if it has no other words. names are the stems of names and numbers, as bits.
func queryTerms(text string) (plain, stems []string, names uint64) {
	var stops []string
	text = cut(text, maxQueryBytes)
	end := 0
	for t := range words.All(text) {
		first := len(plain) == 0 || strings.ContainsAny(text[end:t.Start], ".?!")
		end = t.End
		plain = append(plain, t.Term)
		list := &stems
		if isStopWord(t.Term) {
			list = &stops
		}
		if s := stem(t.Term); !slices.Contains(*list, s) && len(*list) < maxQueryTerms {
			*list = append(*list, s)
			if list == &stems && isName(text[t.Start:t.End], first) {
				names |= 1 << (len(stems) - 1)
			}
		}
	}
	if len(stems) == 0 {
		stems = stops
	}
	return plain, stems, names
}

// isName reports whether a word is the name of something, or has a number. The first word of a sentence tells nothing
// by its capital letter.
func isName(word string, first bool) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) && !first || strings.ContainsFunc(word, unicode.IsDigit)
}

func cut(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "")
	}
	return text
}

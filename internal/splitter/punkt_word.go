package splitter

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// hasBreak reports whether a sentence ends between two words of a text.
func hasBreak(context string) bool {
	previous := ""
	for word := range words(context) {
		if previous != "" && breaks(previous, word) {
			return true
		}
		previous = word
	}
	return false
}

// number matches a number with or without a period after it.
var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?[.,]?\p{Nd}[\p{Nd},.-]*$`) })

// breaks reports whether a sentence ends between two words.
func breaks(word, next string) bool {
	switch {
	case word == "?" || word == "!":
		return true
	case !strings.HasSuffix(word, "."), word != "." && strings.HasSuffix(word, ".."):
		return false
	case isInitial(word):
		return !startsUpper(next) && !continues(next)
	case number().MatchString(word):
		return !continues(next)
	}
	return true
}

// isInitial reports whether a word is a letter with a period.
func isInitial(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return word[size:] == "." && (r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) && !unicode.IsDigit(r))
}

// continues reports whether a word or sign cannot begin a sentence.
func continues(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) || size == len(word) && strings.ContainsRune(";:,.!?", r)
}

// startsUpper reports whether a word begins with an upper-case letter.
func startsUpper(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r)
}

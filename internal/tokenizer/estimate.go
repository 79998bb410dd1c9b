package tokenizer

import "unicode/utf8"

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

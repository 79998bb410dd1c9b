package ranking

import "strings"

// stem returns the stem of an English word by the algorithm of M. F. Porter, An
// algorithm for suffix stripping (1980). Words with other signs than the letters a to z
// are returned as they are.
func stem(word string) string {
	if len(word) <= 2 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	word = stemPlural(word)
	word = stemPast(word)
	if strings.HasSuffix(word, "y") && hasVowel(word[:len(word)-1]) {
		word = word[:len(word)-1] + "i"
	}
	word = replaceSuffix(word, nestedSuffixes, 0)
	word = replaceSuffix(word, shortSuffixes, 0)
	word = stemLong(word)
	return stemEnd(word)
}

// suffix is an ending and what replaces it.
type suffix struct{ from, to string }

// The endings of steps 2 to 4. Of those that fit, the longest comes first.
//
//nolint:gochecknoglobals // constant tables
var (
	nestedSuffixes = []suffix{{"ational", "ate"}, {"ization", "ize"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"},
		{"tional", "tion"}, {"biliti", "ble"}, {"entli", "ent"}, {"ousli", "ous"}, {"ation", "ate"}, {"alism", "al"}, {"aliti", "al"}, {"iviti", "ive"},
		{"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"abli", "able"}, {"alli", "al"}, {"ator", "ate"}, {"eli", "e"}}
	shortSuffixes = []suffix{{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""}}
	longSuffixes  = []suffix{{"ement", ""}, {"ance", ""}, {"ence", ""}, {"able", ""}, {"ible", ""}, {"ment", ""}, {"ant", ""}, {"ent", ""}, {"ion", ""},
		{"ism", ""}, {"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""}, {"al", ""}, {"er", ""}, {"ic", ""}, {"ou", ""}}
)

func stemPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), !strings.HasSuffix(w, "s"):
		return w
	}
	return w[:len(w)-1]
}

func stemPast(w string) string {
	if strings.HasSuffix(w, "eed") {
		if measure(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	}
	base, found := strings.CutSuffix(w, "ed")
	if !found {
		base, found = strings.CutSuffix(w, "ing")
	}
	switch {
	case !found || !hasVowel(base):
		return w
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	case endsTwice(base) && !strings.ContainsRune("lsz", rune(base[len(base)-1])):
		return base[:len(base)-1]
	case measure(base) == 1 && endsShort(base):
		return base + "e"
	}
	return base
}

// replaceSuffix replaces the first of the endings that fits if the measure of what is
// before it is greater than least.
func replaceSuffix(w string, endings []suffix, least int) string {
	for _, s := range endings {
		if base, found := strings.CutSuffix(w, s.from); found {
			if measure(base) > least {
				return base + s.to
			}
			return w
		}
	}
	return w
}

func stemLong(w string) string {
	if base, found := strings.CutSuffix(w, "ion"); found && !strings.HasSuffix(base, "s") && !strings.HasSuffix(base, "t") {
		return w
	}
	return replaceSuffix(w, longSuffixes, 1)
}

func stemEnd(w string) string {
	if base, found := strings.CutSuffix(w, "e"); found {
		if m := measure(base); m > 1 || m == 1 && !endsShort(base) {
			w = base
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w[:len(w)-1]) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

func isConsonant(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !isConsonant(w, i-1)
	}
	return true
}

// measure returns how often a consonant follows a vowel.
func measure(w string) int {
	n, vowel := 0, false
	for i := range len(w) {
		consonant := isConsonant(w, i)
		if consonant && vowel {
			n++
		}
		vowel = !consonant
	}
	return n
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if !isConsonant(w, i) {
			return true
		}
	}
	return false
}

func endsTwice(w string) bool {
	n := len(w)
	return n >= 2 && w[n-1] == w[n-2] && isConsonant(w, n-1)
}

// endsShort reports whether a word ends with consonant, vowel and a consonant that is
// none of w, x and y.
func endsShort(w string) bool {
	n := len(w)
	return n >= 3 && isConsonant(w, n-1) && !isConsonant(w, n-2) && isConsonant(w, n-3) && !strings.ContainsRune("wxy", rune(w[n-1]))
}

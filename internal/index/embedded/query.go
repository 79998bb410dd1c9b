package embedded

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/words"
	"github.com/qtype-dev/qtype/internal/words/stem"
)

// Bounds of a query.
const (
	maxQueryBytes  = 16 << 10 // of the text that is read
	maxQueryTerms  = 64       // terms that are searched: the rarest
	maxPhraseTerms = 32
)

// queryTerm is a word or phrase to find.
type queryTerm struct {
	words    []string // one word, or those of a phrase, as they are indexed without stems
	written  []string // these words as in the query
	prefix   bool     // the last word is the beginning of one
	forms    []form   // what finds the term
	variants []string // words to find instead of one that no text has
	rows     int64    // rows of the full-text table that have it
}

// form is a term in the stems of a language.
type form struct {
	words  []string
	prefix bool
}

// key returns what distinguishes terms.
func (t *queryTerm) key() string {
	key := strings.Join(t.words, " ")
	if t.prefix {
		key += "*"
	}
	return key
}

// setForms sets the forms of the term in the languages of the index; without one, the words as they are.
func (t *queryTerm) setForms(languages []stem.Language) {
	add := func(f form) {
		if !slices.ContainsFunc(t.forms, func(known form) bool { return known.prefix == f.prefix && slices.Equal(known.words, f.words) }) {
			t.forms = append(t.forms, f)
		}
	}
	if len(languages) == 0 {
		add(form{t.words, t.prefix})
	}
	for _, language := range languages {
		stems := make([]string, len(t.written))
		for i, word := range t.written {
			stems[i] = language.Term(word)
		}
		if last := len(stems) - 1; t.prefix && stems[last] != t.words[last] {
			add(form{append(slices.Clone(stems[:last]), t.words[last]), true})
			add(form{stems, false})
			continue
		}
		add(form{stems, t.prefix})
	}
}

// expression returns the term in the language of FTS5. Words have only letters, digits and
// symbols outside of ASCII, so that quotes make any of them a string.
func (t *queryTerm) expression() string {
	var parts []string
	for _, v := range t.variants {
		parts = append(parts, `"`+v+`"`)
	}
	for _, f := range t.forms {
		if len(t.variants) > 0 {
			break
		}
		part := `"` + strings.Join(f.words, " ") + `"`
		if f.prefix {
			part += "*"
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// parseQuery returns the terms of a text: words, phrases in quotes, and beginnings of words
// before *. Other signs separate words.
func parseQuery(text string) []queryTerm {
	if len(text) > maxQueryBytes {
		text = strings.ToValidUTF8(text[:maxQueryBytes], "")
	}
	var terms []queryTerm
	for text != "" {
		before, rest, quoted := strings.Cut(text, `"`)
		terms = append(terms, parseWords(before)...)
		phrase, after, closed := strings.Cut(rest, `"`)
		if !quoted {
			break
		}
		if !closed {
			terms = append(terms, parseWords(rest)...)
			break
		}
		if t := phraseOf(phrase); len(t.words) > 0 {
			t.prefix = t.prefix || strings.HasPrefix(after, "*")
			terms = append(terms, t)
		}
		text = after
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(terms, func(t queryTerm) bool {
		repeated := seen[t.key()]
		seen[t.key()] = true
		return repeated
	})
}

// phraseOf returns the words of a text as a phrase.
func phraseOf(text string) (t queryTerm) {
	for token := range words.All(text) {
		if len(t.words) == maxPhraseTerms {
			break
		}
		t.words, t.written = append(t.words, token.Term), append(t.written, text[token.Start:token.End])
	}
	t.prefix = len(t.words) > 0 && strings.HasSuffix(text, "*")
	return t
}

// parseWords returns the words of a text. Neighbors that are words of one character each,
// see words.IsOneWord, are a phrase.
func parseWords(text string) (terms []queryTerm) {
	previousEnd, previousAlone := -1, false
	for token := range words.All(text) {
		first := []rune(token.Term)[0]
		alone := words.IsOneWord(first)
		if alone && previousAlone && token.Start == previousEnd && len(terms[len(terms)-1].words) < maxPhraseTerms {
			last := &terms[len(terms)-1]
			last.words, last.written = append(last.words, token.Term), append(last.written, text[token.Start:token.End])
		} else {
			terms = append(terms, queryTerm{words: []string{token.Term}, written: []string{text[token.Start:token.End]}})
		}
		terms[len(terms)-1].prefix = strings.HasPrefix(text[token.End:], "*")
		previousEnd, previousAlone = token.End, alone
	}
	return terms
}

// combine returns the expression that finds any of the terms, or all of them.
func combine(terms []queryTerm, all bool) string {
	parts := make([]string, len(terms))
	for i := range terms {
		parts[i] = terms[i].expression()
	}
	if all {
		return strings.Join(parts, " AND ")
	}
	return strings.Join(parts, " OR ")
}

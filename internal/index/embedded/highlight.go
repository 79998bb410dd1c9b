package embedded

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/words"
	"github.com/qtype-dev/qtype/internal/words/stem"
)

const (
	maxHighlights  = 3
	passageBytes   = 160 // about the length of a passage
	maxMarkedBytes = 1 << 20
)

// shown returns the texts of an entry that were searched.
func (x *Index) shown(e index.Entry) []string {
	var texts []string
	if e.Text != "" {
		texts = append(texts, e.Text)
	}
	if x.opts.Fields && len(texts) == 0 {
		fields := fieldTexts(e.Metadata)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			texts = append(texts, fields[name]...)
		}
	}
	return texts
}

// passage is a part of a text around words that match.
type passage struct {
	text    string
	words   []words.Token
	matches int // different terms
}

// highlights returns the passages with the most terms, with matching words between **.
func (s *searcher) highlights(texts []string) []string {
	m := matcher{terms: s.terms}
	if len(s.languages) > 0 {
		m.language = stem.Of(texts...)
	}
	var all []passage
	for _, text := range texts {
		all = append(all, m.passages(text[:min(len(text), maxMarkedBytes)])...)
	}
	slices.SortStableFunc(all, func(a, b passage) int { return b.matches - a.matches })
	var out []string
	for _, p := range all[:min(len(all), maxHighlights)] {
		out = append(out, p.marked())
	}
	return out
}

// matcher finds the words of a text that match terms.
type matcher struct {
	terms    []queryTerm
	language stem.Language // of the text; empty to compare words
}

// passages returns the parts of a text that have matching words.
func (m *matcher) passages(text string) []passage {
	var list []passage
	var seen map[string]bool
	for t := range words.All(text) {
		if !m.matches(t.Term, m.language.Term(text[t.Start:t.End])) {
			continue
		}
		last := len(list) - 1
		if last < 0 || t.End-list[last].words[0].Start > passageBytes {
			list, seen = append(list, passage{text: text}), map[string]bool{}
			last++
		}
		list[last].words = append(list[last].words, t)
		if !seen[t.Term] {
			seen[t.Term] = true
			list[last].matches++
		}
	}
	return list
}

// matches reports whether a word of a text, with this stem, is in one of the terms.
func (m *matcher) matches(word, stem string) bool {
	for i := range m.terms {
		t := &m.terms[i]
		if slices.Contains(t.variants, stem) || slices.ContainsFunc(t.forms, func(f form) bool { return len(t.variants) == 0 && f.matches(word, stem) }) {
			return true
		}
	}
	return false
}

// matches reports whether a word with this stem is in the form.
func (f *form) matches(word, stem string) bool {
	last := len(f.words) - 1
	return slices.Contains(f.words, stem) || f.prefix && strings.HasPrefix(word, f.words[last])
}

// marked returns the passage with some text around its words.
func (p *passage) marked() string {
	first, last := p.words[0].Start, p.words[len(p.words)-1].End
	room := max(0, passageBytes-(last-first)) / 2
	from, to := boundary(p.text, first-room, -1), boundary(p.text, last+room, 1)
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	at := from
	for _, w := range p.words {
		b.WriteString(p.text[at:w.Start] + "**" + p.text[w.Start:w.End] + "**")
		at = w.End
	}
	b.WriteString(p.text[at:to])
	if to < len(p.text) {
		b.WriteString("…")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// boundary returns the end of a word near a place: at most 20 bytes further in a direction.
func boundary(text string, at, direction int) int {
	const most = 20
	if at <= 0 {
		return 0
	}
	if at >= len(text) {
		return len(text)
	}
	for step := range most {
		if i := at + direction*step; i <= 0 || i >= len(text) || text[i] == ' ' || text[i] == '\n' {
			return max(0, min(i, len(text)))
		}
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

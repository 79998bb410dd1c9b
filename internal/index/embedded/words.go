package embedded

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/words"
	"github.com/qtype-dev/qtype/internal/words/stem"
)

// The rows of words are numbered by entry and field. Field 0 is the text of the entry;
// fields after the last number are indexed together.
const (
	fieldBits = 10
	lastField = 1<<fieldBits - 1
)

// putWords adds the words of an entry to the full-text table, or their stems in the language of the entry.
func (w *writer) putWords(entry int64, e *index.Entry) error {
	texts := map[int64][]string{}
	if e.Text != "" {
		texts[0] = []string{e.Text}
	}
	if w.x.opts.Fields {
		for name, values := range fieldTexts(e.Metadata) {
			field, err := w.field(name)
			if err != nil {
				return err
			}
			texts[field] = append(texts[field], values...)
		}
	}
	numbers := slices.Sorted(maps.Keys(texts))
	term := func(t words.Token, _ string) string { return t.Term }
	if language, err := w.language(numbers, texts); err != nil {
		return err
	} else if language != "" {
		term = func(t words.Token, text string) string { return language.Term(text[t.Start:t.End]) }
	}
	for _, field := range numbers {
		var content []string
		for _, text := range texts[field] {
			for t := range words.All(text) {
				content = append(content, term(t, text))
			}
		}
		if len(content) == 0 {
			continue
		}
		if err := w.addTerms(content); err != nil {
			return err
		}
		if _, err := w.exec(w.s.addWords, entry<<fieldBits|field, strings.Join(content, " ")); err != nil {
			return err
		}
	}
	return nil
}

// language returns the language of the texts of an entry, which it adds to those of the index; empty if words are
// stored as they are.
func (w *writer) language(fields []int64, texts map[int64][]string) (stem.Language, error) {
	language := stem.Language(w.x.stemming(w.state))
	if language == stemAuto {
		var all []string
		for _, field := range fields {
			all = append(all, texts[field]...)
		}
		language = stem.Of(all...)
	}
	if language == "" || w.languages[language] {
		return language, nil
	}
	w.languages[language] = true
	_, err := w.exec(w.s.addLanguage, string(language))
	return language, err
}

// addTerms adds the terms that no text had before to the vocabulary.
func (w *writer) addTerms(terms []string) error {
	for _, term := range terms {
		if _, known := w.terms[term]; known || w.s.vocab.has(term) {
			continue
		}
		if _, err := w.exec(w.s.addTerm, term); err != nil {
			return err
		}
		w.terms[term] = struct{}{}
	}
	return nil
}

// removeWords removes the rows of an entry.
func (w *writer) removeWords(entry int64) error {
	_, err := w.exec(w.s.removeWords, entry<<fieldBits, entry<<fieldBits|lastField)
	return err
}

// field returns the number of a field, which it adds.
func (w *writer) field(name string) (int64, error) {
	if w.fields == nil {
		var err error
		if w.fields, err = readFields(w.ctx, w.tx); err != nil {
			return 0, err
		}
	}
	number, known := w.fields[name]
	if known {
		return number, nil
	}
	number = int64(len(w.fields)) + 1
	if number >= lastField {
		return lastField, nil
	}
	w.fields[name] = number
	_, err := w.tx.ExecContext(w.ctx, "INSERT INTO fields VALUES (?, ?)", number, name)
	return number, err
}

// fieldTexts returns the text and the numbers of metadata by their fields; those of
// mappings are named with dots.
func fieldTexts(metadata map[string]any) map[string][]string {
	texts := map[string][]string{}
	var add func(name string, v any)
	add = func(name string, v any) {
		switch x := v.(type) {
		case string:
			texts[name] = append(texts[name], x)
		case int, int64, float64:
			texts[name] = append(texts[name], fmt.Sprint(x))
		case []any:
			for _, item := range x {
				add(name, item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(x)) {
				add(name+"."+key, x[key])
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		add(key, metadata[key])
	}
	return texts
}

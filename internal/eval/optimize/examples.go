package optimize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/value"
)

// The limits of examples.
const (
	exampleSets      = 6   // are tried for a text: of 2, 4 and 8 rows, twice each
	maxExampleLength = 500 // characters of one
)

// addExamples tries training rows as examples in system messages, added to the best candidate. They are compared with validation rows
// at once: a candidate is never judged by a row that it shows.
func (s *search) addExamples(ctx context.Context) error {
	for _, t := range s.examples {
		parent := s.best()
		for i := range exampleSets {
			rows, text := s.exampleSet(2 << (i % 3))
			if len(rows) == 0 {
				break
			}
			c, err := s.child(ctx, parent, map[string]any{t.Address: strings.TrimRight(parent.textOf(t), "\n") + "\n\nExamples:\n" + strings.TrimRight(text, "\n")})
			switch {
			case errors.Is(err, errRejected):
				s.note(c)
				continue
			case err != nil:
				return err
			}
			for _, row := range rows {
				c.Examples = append(slices.Clip(c.Examples), s.rows[row].Number)
			}
			if err := s.validate(ctx, c); err != nil {
				return err
			}
		}
	}
	if len(s.examples) > 0 {
		s.unchanged, s.stopped = 0, "all values and sets of examples were tried"
	}
	return nil
}

// exampleSet chooses n training rows at random, as many of each expected value as possible, and writes them.
func (s *search) exampleSet(n int) (rows []int, text string) {
	left := slices.Concat(s.shuffled(s.train)...)
	used := map[string]int{}
	for len(rows) < n {
		best, bestText, bestExpected := -1, "", ""
		for i, row := range left {
			example, expected := s.example(row)
			if example != "" && (best < 0 || used[expected] < used[bestExpected]) {
				best, bestText, bestExpected = i, example, expected
			}
		}
		if best < 0 {
			break
		}
		used[bestExpected]++
		rows, text = append(rows, left[best]), text+"\n"+bestText
		left = slices.Delete(left, best, best+1)
	}
	return rows, text
}

// unseen returns the training sessions of which a candidate shows no row.
func (s *search) unseen(c *Candidate) [][]int {
	return slices.DeleteFunc(slices.Clone(s.train), func(session []int) bool {
		return slices.ContainsFunc(session, func(row int) bool { return slices.Contains(c.Examples, s.rows[row].Number) })
	})
}

func (t *application) example(row int) (text, expected string) {
	inputs, want := t.bench.Inputs(row), t.bench.Expected(row)
	if expected = value.Text(want); want == nil || expected == "" {
		return "", ""
	}
	input := ""
	for _, v := range inputs {
		input = value.Text(v)
	}
	if len(inputs) != 1 {
		raw, err := textfmt.CompactJSON(inputs)
		if err != nil {
			return "", ""
		}
		input = string(raw)
	}
	text = fmt.Sprintf("Input: %s\nOutput: %s\n", input, expected)
	if utf8.RuneCountInString(text) > maxExampleLength || strings.Contains(text, "${") || t.bench.Redact(text) != text ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return "", ""
	}
	return text, expected
}

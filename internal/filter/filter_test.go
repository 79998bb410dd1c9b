package filter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// mapping reads a mapping of YAML with the types that documents have.
func mapping(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	testkit.Must(t, yaml.Unmarshal([]byte(text), &m))
	return m
}

func TestParse_Tree(t *testing.T) {
	got, err := filter.Parse(mapping(t, `{lang: en, year: {gte: 2020, lt: 2024.5}, tag: [a, b], draft: {exists: false},
		name: {ne: x}, or: [{a.b: {not_in: [1]}}, {ok: true}], not: {n: {in: [2]}, and: [{e: {exists: true}}]}}`))
	testkit.Must(t, err)
	want := filter.And{Of: []filter.Filter{
		filter.Not{Of: filter.Exists{Field: "draft"}},
		filter.Compare{Field: "lang", Op: filter.Equal, Value: "en"},
		filter.Not{Of: filter.Compare{Field: "name", Op: filter.Equal, Value: "x"}},
		filter.Not{Of: filter.And{Of: []filter.Filter{
			filter.And{Of: []filter.Filter{filter.Exists{Field: "e"}}},
			filter.In{Field: "n", Values: []any{int64(2)}},
		}}},
		filter.Or{Of: []filter.Filter{
			filter.Not{Of: filter.In{Field: "a.b", Values: []any{int64(1)}}},
			filter.Compare{Field: "ok", Op: filter.Equal, Value: true},
		}},
		filter.In{Field: "tag", Values: []any{"a", "b"}},
		filter.And{Of: []filter.Filter{
			filter.Compare{Field: "year", Op: filter.GreaterOrEqual, Value: int64(2020)},
			filter.Compare{Field: "year", Op: filter.Less, Value: 2024.5},
		}},
	}}
	if d := cmp.Diff(filter.Filter(want), got); d != "" {
		t.Error(d)
	}
	if f, err := filter.Parse(nil); f != nil || err != nil {
		t.Errorf("no conditions: %v, %v", f, err)
	}
}

func TestParse_Errors(t *testing.T) {
	for text, want := range map[string]string{
		`{year: {gt: 1, gted: 2}}`: `filters.year.gted: unknown operator "gted" (did you mean "gte"?)`,
		`{author: {firstname: x}}`: `filters.author.firstname: unknown operator "firstname" (the operators are eq, ne, gt, gte, lt, lte, in, not_in, exists; a key of a mapping is written author.firstname)`,
		`{year: {}}`:               `filters.year: expected a value or operators, got an empty mapping (the operators are eq, ne, gt, gte, lt, lte, in, not_in, exists)`,
		`{draft: null}`:            `filters.draft: expected a value, got null (for a field without a value, write {exists: false})`,
		`{draft: {exists: 1}}`:     `filters.draft.exists: expected true or false, got a number`,
		`{draft: {gt: true}}`:      `filters.draft.gt: expected a number or text, got a boolean`,
		`{n: .nan}`:                `filters.n: expected a finite number`,
		`{tag: {in: a}}`:           `filters.tag.in: expected a list of values, got text`,
		`{tag: []}`:                `filters.tag: expected a list of values, got an empty list`,
		`{tag: [a, {b: 1}]}`:       `filters.tag[1]: expected text, a number or a boolean, got a mapping`,
		`{or: {a: 1}}`:             `filters.or: expected a list of conditions, got a mapping`,
		`{or: [{a: 1}, b]}`:        `filters.or[1]: expected a mapping of conditions, got text`,
		`{and: [{}]}`:              `filters.and[0]: expected at least one condition`,
		`{not: [1]}`:               `filters.not: expected a mapping of conditions, got a list`,
		`{a..b: 1}`:                `filters.a..b: a field has a name, or names with a dot between two`,
		strings.Repeat("{not: ", 80) + `{a: 1}` + strings.Repeat("}", 80): `the conditions are nested deeper than 32 levels`,
	} {
		_, err := filter.Parse(mapping(t, text))
		var parse *filter.Error
		if !errors.As(err, &parse) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestMatch(t *testing.T) {
	metadata := map[string]any{
		"lang": "en", "year": int64(2021), "score": 0.5, "int": 7, "draft": true, "none": nil,
		"tags": []any{"a", int64(3), false}, "author": map[string]any{"name": "Ada", "born": int64(1815)},
		"empty": []any{},
	}
	for text, want := range map[string]bool{
		`{lang: en}`:                    true,
		`{lang: [de, en]}`:              true,
		`{lang: {ne: en}}`:              false,
		`{lang: {gt: ea, lt: eo}}`:      true,
		`{lang: 1}`:                     false,
		`{year: 2021.0}`:                true,
		`{year: {gte: 2021, lt: 2022}}`: true,
		`{year: {gt: 2021}}`:            false,
		`{year: {lte: 2020.5}}`:         false,
		`{year: "2021"}`:                false,
		`{score: {lt: 1}}`:              true,
		`{int: 7}`:                      true,
		`{int: {in: [6, 7]}}`:           true,
		`{draft: true}`:                 true,
		`{draft: false}`:                false,
		`{draft: {ne: false}}`:          true,
		`{draft: 1}`:                    false,
		`{none: {exists: true}}`:        false,
		`{none: {exists: false}, missing: {exists: false}, lang: {exists: true}}`: true,
		`{missing: {ne: x}}`:                  true,
		`{missing: {not_in: [x]}}`:            true,
		`{missing: {lt: 5}}`:                  false,
		`{not: {missing: {lt: 5}}}`:           true,
		`{tags: a}`:                           true,
		`{tags: {ne: a}}`:                     false,
		`{tags: [z, 3]}`:                      true,
		`{tags: {gt: 2}}`:                     true,
		`{tags: false}`:                       true,
		`{tags: true}`:                        false,
		`{empty: {exists: true}}`:             false,
		`{empty: {ne: 1}}`:                    true,
		`{author.name: Ada}`:                  true,
		`{author.born: {lt: 1900}}`:           true,
		`{author: {exists: true}}`:            true,
		`{author.name.first: {exists: true}}`: false,
		`{or: [{lang: de}, {year: 2021}]}`:    true,
		`{or: [{lang: de}, {year: 2020}]}`:    false,
		`{and: [{lang: en}, {year: 2020}]}`:   false,
		`{lang: en, not: {draft: true}}`:      false,
	} {
		f, err := filter.Parse(mapping(t, text))
		testkit.Must(t, err)
		if f.Match(metadata) != want {
			t.Errorf("%s: got %v", text, !want)
		}
	}
}

func TestMatch_LargeNumbers(t *testing.T) {
	const large = 1<<53 + 1
	f := filter.Compare{Field: "n", Op: filter.Equal, Value: int64(large)}
	if !f.Match(map[string]any{"n": int64(large)}) || f.Match(map[string]any{"n": int64(large - 1)}) {
		t.Error("whole numbers are not compared exactly")
	}
}

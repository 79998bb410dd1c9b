package jsonpath_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/jsonpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(path jp.Expr, doc any) []any { return path.Get(doc) }

const sample = `{"a":1,"b":2.5,"s":"foo","t":"bär","l":[3,1,2],"m":[{"x":1,"y":5},{"x":2,"y":6}],
	"d":{"j":1,"k":2},"csv":"a,b,c","big":4611686018427387904,"deep":{"x-y":9},"mixed":[1,"x"],"a-b":7,"2nd":8}`

// What jsonpath-ng finds, it finds here; where it differs a comment says so.
func TestPaths(t *testing.T) {
	doc := oj.MustParseString(sample)
	for path, want := range map[string]string{
		"$.a + $.b":                 `[3.5]`,
		"$.a+$.b":                   `[3.5]`,
		"$.a - $.b":                 `[-1.5]`,
		"$.a * 2":                   `[2]`,
		"2 * $.a":                   `[2]`,
		"$.b / 2":                   `[1.25]`, // jsonpath-ng has no division by a number
		"$.a / 0":                   `[]`,
		"$.s + $.t":                 `["foobär"]`,
		"$.s + ' - ' + $.t":         `["foo - bär"]`,
		`"x" + $.s`:                 `["xfoo"]`,
		"$.m[*].x + $.m[*].y":       `[6,8]`,
		"$.m[*].x * 2":              `[2,4]`,
		"$.m[?(@.x > 1)].y + 1":     `[7]`,
		"$.l[*] + 1":                `[4,2,3]`,
		"$.l[0] - $.l[1]":           `[2]`,
		"$.a + 1 * 2":               `[3]`,
		"($.a + $.b) * 2":           `[7]`,
		"$.a + $.b + $.a":           `[4.5]`,
		"$.a + $.missing":           `[]`,
		"$.a + $.s":                 `[]`,
		"$.a + $.l[*]":              `[]`,
		"$.big + $.big":             `[9223372036854776000]`,
		"$.l + $.l":                 `[[3,1,2,3,1,2]]`,
		"$.l.`len`":                 `[3]`,
		"$.l.`len` + 1":             `[4]`,
		"$.d.`len`":                 `[2]`,
		"$.t.`len`":                 `[3]`,
		"$.a.`len`":                 `[]`,
		"$.missing.`len`":           `[]`,
		"$.m[*].`len`":              `[2,2]`,
		"$.l.`sorted`":              `[[1,2,3]]`,
		"$.l.`sorted`[0]":           `[1]`,
		"$.d.`sorted`":              `[["j","k"]]`,
		"$.d.`keys`":                `["j","k"]`,
		"$.s.`this`":                `["foo"]`,
		"$.a.`str()`":               `["1"]`,
		"$.csv.`split(',', 1, -1)`": `["b"]`,
		"$.csv.`split(,, 1, -1)`":   `["b"]`,
		"$.csv.`split(',', -1, 1)`": `["b,c"]`,
		"$.csv.`split(',', *, -1)`": `["a","b","c"]`,
		"$.csv.`split(',', 9, -1)`": `[]`,
		"$.s.`sub(/o+/, 0)`":        `["f0"]`,
		"$.s.`sub(/(f)o/, \\1x)`":   `["fxo"]`,
		"$.m[*].y":                  `[5,6]`,
		"m[-1].y":                   `[6]`,
		"$.deep.*":                  `[9]`,
		"$.a-b":                     `[7]`, // a name, as in jsonpath-ng
		"a-b":                       `[7]`, "$..x-y": `[9]`, "$.deep.x-y": `[9]`, "deep.x-y.`str()`": `["9"]`, "$.a-b - $.a": `[6]`, "2nd": `[8]`,
		"$['a-b'] + 1":                     `[8]`,
		"$.m[?(@.x + 1 > 2)].y + $.m[1].x": `[8]`,
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		found, err := p.Find(doc, get)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if found == nil {
			found = []any{}
		}
		if got, _ := json.Marshal(found); string(got) != want {
			t.Errorf("%s finds %s, expected %s", path, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for path, want := range map[string]string{
		"":                       "it is empty",
		"$.a +":                  "it ends before it is complete",
		"($.a + 1":               "a ) is missing",
		"$.a) + 1":               `") + 1" is not expected`,
		"1 + ":                   "it ends before it is complete",
		"7":                      "it names nothing",
		"$.a.`len":               "the function `len is not closed",
		"$.a.`sized`":            "the function `sized` is not known; these are: len, sorted, keys, this, str(), split(SEPARATOR, INDEX, MOST), sub(/PATTERN/, TEXT)",
		"$.a.`split(1)`":         "the function `split(1)` is not split(SEPARATOR, INDEX, MOST)",
		"$.a.`sub(x)`":           "the function `sub(x)` is not sub(/PATTERN/, TEXT)",
		"$.a.`split(`":           "the function `split(` lacks its )",
		"'abc":                   "the text 'abc is not closed",
		"$.a.`sub(/(/, x)` + $.": "the function `sub(/(/, x)`: error parsing regexp: missing closing ): `(`",
	} {
		if _, err := jsonpath.Parse(path); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, expected %s", path, err, want)
		}
	}
	p, err := jsonpath.Parse("$.mixed.`sorted`")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Find(oj.MustParseString(sample), get); fmt.Sprint(err) != "`sorted`: only numbers, or only texts, can be put in order" {
		t.Errorf("sorted of mixed values: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"$.a + 1", "$.l.`len`", "((", "$.s.`sub(/a/, b)`", "`split(,, 1, 2)`", "*/-+", "'", "$..[?(@.x)]"} {
		f.Add(s)
	}
	doc := oj.MustParseString(sample)
	f.Fuzz(func(_ *testing.T, text string) {
		if p, err := jsonpath.Parse(text); err == nil {
			_, _ = p.Find(doc, func(jp.Expr, any) []any { return []any{int64(1), "x"} })
		}
	})
}

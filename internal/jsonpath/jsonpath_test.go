package jsonpath_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/jsonpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(path jp.Expr, doc any) []any { return path.Get(doc) }

const sample = `{"a":1,"b":2.5,"s":"foo","t":"bär","l":[3,1,2],"m":[{"x":1,"y":5},{"x":2,"y":6}],
	"d":{"j":1,"k":2},"csv":"a,b,c","big":4611686018427387904,"deep":{"x-y":9},"mixed":[1,"x"],"a-b":7,"2nd":8,"large":1234567.5}`

// The results are those of jsonpath-ng, except where a comment notes a difference.
func TestPath_Find(t *testing.T) {
	doc := oj.MustParseString(sample)
	for path, want := range map[string]string{
		"$.a + $.b":                 `[3.5]`,
		"$.a+$.b":                   `[3.5]`,
		"$.a - $.b":                 `[-1.5]`,
		"$.a * 2":                   `[2]`,
		"2 * $.a":                   `[2]`,
		"$.b / 2":                   `[1.25]`, // jsonpath-ng cannot divide by a number
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
		"$.large.`str()`":           `["1234567.5"]`,
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
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestParse_Places checks which part of a path an error is about.
func TestParse_Places(t *testing.T) {
	for path, want := range map[string]string{
		"$.items[":                      "7 [",
		" $.items[ ":                    "7 [",
		"$.items[abc]":                  "8 a",
		"$.é[abc]":                      "5 a",
		"$.items[1:x]":                  "10 x",
		"$.it ems":                      "4  ",
		"$.a[1,]":                       "6 ]",
		"$.a]":                          "3 ]",
		"$.a[-]":                        "5 ]",
		"$.a[1":                         "4 1",
		"$x":                            "1 x",
		"$.a[?(@.x =+ 1)]":              "10 =+",
		"$.a[?(foo(@) == 1)]":           "6 foo",
		"$.content-type[abc]":           "15 a",
		"content-type..and-more.x[abc]": "25 a",
		"$.a.`len`[abc]":                "10 a",
		"$.a.`len`.b-c[abc]":            "14 a",
		"$.a +":                         "4 +",
		"($.a + 1":                      "7 1",
		"$.a) + 1":                      "3 ) + 1",
		"$.b * $.a[":                    "9 [",
		"$.a.`sized` + 1":               "4 `sized`",
		"$.a.`len":                      "4 `len",
		"$.a + 'abc":                    "6 'abc",
	} {
		_, err := jsonpath.Parse(path)
		var at *jsonpath.Error
		if !errors.As(err, &at) {
			t.Errorf("%s: %v has no place", path, err)
			continue
		}
		if got := fmt.Sprint(at.From, " ", strings.TrimSpace(path)[at.From:at.From+at.Len]); got != want {
			t.Errorf("%s: %v at %q, want %q", path, err, got, want)
		}
	}
}

func TestParse_Errors(t *testing.T) {
	for path, want := range map[string]string{
		"":                       "empty path",
		"$.a +":                  "unexpected end",
		"($.a + 1":               "missing )",
		"$.a) + 1":               `unexpected ") + 1"`,
		"1 + ":                   "unexpected end",
		"7":                      "a constant is not a path",
		"$.a.`len":               "unclosed function `len",
		"$.a.`sized`":            "unknown function `sized`; the functions are len, sorted, keys, this, str(), split(SEPARATOR, INDEX, MAX), sub(/PATTERN/, TEXT)",
		"$.a.`split(1)`":         "function `split(1)`: expected split(SEPARATOR, INDEX, MAX)",
		"$.a.`sub(x)`":           "function `sub(x)`: expected sub(/PATTERN/, TEXT)",
		"$.a.`split(`":           "function `split(`: missing )",
		"'abc":                   "unclosed string 'abc",
		"$.a.`sub(/(/, x)` + $.": "function `sub(/(/, x)`: error parsing regexp: missing closing ): `(`",
	} {
		if _, err := jsonpath.Parse(path); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", path, err, want)
		}
	}
	p, err := jsonpath.Parse("$.mixed.`sorted`")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Find(oj.MustParseString(sample), get); fmt.Sprint(err) != "`sorted`: cannot sort values that are neither all numbers nor all strings" {
		t.Errorf("sorted of mixed values: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"$.a + 1", "$.l.`len`", "((", "$.s.`sub(/a/, b)`", "`split(,, 1, 2)`", "*/-+", "'", "$..[?(@.x)]"} {
		f.Add(s)
	}
	doc := oj.MustParseString(sample)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := jsonpath.Parse(text)
		var at *jsonpath.Error
		switch {
		case err == nil:
			_, _ = p.Find(doc, func(jp.Expr, any) []any { return []any{int64(1), "x"} })
		case errors.As(err, &at) && (at.From < 0 || at.Len < 1 || at.From+at.Len > len(strings.TrimSpace(text))):
			t.Errorf("%q: %v at %d, %d bytes", text, err, at.From, at.Len)
		}
	})
}

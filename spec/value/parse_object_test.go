package value_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/value"
)

// rowSeeds returns objects and texts that only look like objects.
func rowSeeds() []string {
	return []string{
		`{}`, `{"a":1}`, ` { "a" : "x" , "b":null } `, `{"a":"x\n\u00e9\/\"\\"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`,
		`{"a":1,"a":2}`, `{"a":[1,-2.5e+3,"x",true,false,null,[],{}],"b":{"c":{"c":1,"c":2}}}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`,
		`{"a":1e}`, `{"a" 1}`, `{"a":1,}`, `{"a":1}x`, `{"a":"x`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":tru}`, `{"a\u0062":1}`,
		`{"ü":"ü"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\t\"}", "{\"a\":\"x\\\t\"}", "{\"a\tb\":1}", `[1]`, `{"a":[1,]}`, `{"a":{"b":1,}}`, `{"":""}`,
	}
}

// FuzzParseObject: ParseObject accepts the objects that encoding/json accepts, and
// returns the same values, independent of the header of the previous row.
func FuzzParseObject(f *testing.F) {
	for _, s := range rowSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // the two replace such bytes differently
		}
		var want map[string]any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		err := dec.Decode(&want)
		valid := err == nil && want != nil && json.Valid([]byte(text))
		for _, header := range [][]string{nil, {"a"}, {"a", "b", "c"}} {
			names, values, err := value.ParseObject(text, header)
			if valid != (err == nil) && strings.Count(text, "[")+strings.Count(text, "{") < 1000 {
				t.Fatalf("%q: got %v, but encoding/json accepts it: %v", text, err, valid)
			}
			if err != nil {
				continue
			}
			if len(names) != len(want) || len(values) != len(want) {
				t.Fatalf("%q after %q: %d names and %d values, want %d", text, header, len(names), len(values), len(want))
			}
			for i, name := range names {
				if !value.Equal(value.FromGo(values[i]), value.FromGo(want[name])) && !sortedEqual(values[i], want[name]) {
					t.Fatalf("%q: %s is %#v, want %#v", text, name, values[i], want[name])
				}
			}
		}
	})
}

// sortedEqual compares values whose objects may have another order of keys.
func sortedEqual(a, b any) bool {
	x, err1 := json.Marshal(value.ToGo(a))
	y, err2 := json.Marshal(value.ToGo(b))
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func TestParseObject(t *testing.T) {
	names, values, err := value.ParseObject(`{"a":1.50,"b":"x\n","a":2.0}`, nil)
	if err != nil || !slices.Equal(names, []string{"a", "b"}) || values[0] != json.Number("2.0") || values[1] != "x\n" {
		t.Errorf("got %q %#v, %v", names, values, err)
	}
	again, _, err := value.ParseObject(`{"a":3,"b":4}`, names)
	if err != nil || &again[0] != &names[0] {
		t.Errorf("equal names are not shared: %q, %v", again, err)
	}
	if shorter, _, err := value.ParseObject(`{"a":3}`, names); err != nil || len(shorter) != 1 {
		t.Errorf("a shorter row has the names %q, %v", shorter, err)
	}
	if other, values, err := value.ParseObject(`{"b":3,"a":4}`, names); err != nil || other[0] != "b" || len(values) != 2 || names[0] != "a" {
		t.Errorf("got %q %v after %q, %v", other, values, names, err)
	}
}

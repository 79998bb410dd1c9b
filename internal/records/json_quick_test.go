package records

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// lineSeeds are objects and what only looks like them.
func lineSeeds() []string {
	return []string{
		`{}`, `{"a":1}`, ` { "a" : "x" , "b":null } `, `{"a":"x\n\u00e9\/\"\\"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`,
		`{"a":1,"a":2}`, `{"a":[1,-2.5e+3,"x",true,false,null,[],{}],"b":{"c":{"c":1,"c":2}}}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`,
		`{"a":1e}`, `{"a" 1}`, `{"a":1,}`, `{"a":1}x`, `{"a":"x`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":tru}`, `{"a\u0062":1}`,
		`{"ü":"ü"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\t\"}", "{\"a\":\"x\\\t\"}", "{\"a\tb\":1}", `[1]`, `{"a":[1,]}`, `{"a":{"b":1,}}`, `{"":""}`,
	}
}

// FuzzQuick: what quick takes is valid JSON, and it is what object makes of it.
func FuzzQuick(f *testing.F) {
	for _, s := range lineSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var last []string
		for _, before := range [][]string{nil, {"a"}, {"a", "b", "c"}} {
			last = before
			got, ok := parseRecordFast([]byte(text), &last)
			if !ok {
				continue
			}
			names, values, err := object([]byte(text))
			if err != nil || !json.Valid([]byte(text)) {
				t.Fatalf("%q is taken, but it is not valid: %v", text, err)
			}
			if !slices.Equal(names, got.Columns) || len(values) != len(got.Values) || len(values) > 0 && !reflect.DeepEqual(values, got.Values) {
				t.Fatalf("%q after %q:\n got %q %#v\nwant %q %#v", text, before, got.Columns, got.Values, names, values)
			}
		}
	})
}

func TestQuickTakesPlainRows(t *testing.T) {
	var last []string
	for _, text := range []string{`{"a":1,"b":"x\n"}`, `{"a":2,"b":[{"c":"é"}]}`} {
		if _, ok := parseRecordFast([]byte(text), &last); !ok {
			t.Errorf("%s is left to the slow way", text)
		}
	}
	shared := &last[0]
	if _, ok := parseRecordFast([]byte(`{"a":3,"b":4}`), &last); !ok || &last[0] != shared {
		t.Error("equal columns are not shared")
	}
	if rec, ok := parseRecordFast([]byte(`{"a":3}`), &last); !ok || len(rec.Columns) != 1 {
		t.Errorf("a shorter record has the columns %q", rec.Columns)
	}
}

package spec_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
)

// arguments has a field of each type that DecodeArguments supports.
type arguments struct {
	Path   string            `yaml:"path" jsonschema:"required"`
	Limit  int               `yaml:"limit" default:"10"`
	Ratio  float64           `yaml:"ratio" default:"0.5"`
	Deep   bool              `yaml:"deep" default:"true"`
	Names  []string          `yaml:"names"`
	Header map[string]string `yaml:"header"`
	Size   *int              `yaml:"size"`
	Free   any               `yaml:"free"`
	hidden string
}

func (a *arguments) CheckArguments() []*spec.ArgumentError {
	a.hidden = "checked"
	if a.Limit < 1 {
		return []*spec.ArgumentError{{Key: "limit", Message: "must be at least 1"}}
	}
	return nil
}

func TestDecodeArguments(t *testing.T) {
	five := 5
	for name, c := range map[string]struct {
		given map[string]any
		want  arguments
		wrong []string
	}{
		"defaults": {given: map[string]any{"path": "a", "limit": nil}, want: arguments{Path: "a", Limit: 10, Ratio: 0.5, Deep: true, hidden: "checked"}},
		"values": {given: map[string]any{"path": "a", "limit": int64(3), "ratio": int64(2), "deep": false, "names": []any{"x", "y"}, "header": map[string]any{"A": "b", "C": nil}, "size": 5.0, "free": []any{nil}},
			want: arguments{Path: "a", Limit: 3, Ratio: 2, Names: []string{"x", "y"}, Header: map[string]string{"A": "b", "C": ""}, Size: &five, Free: []any{nil}, hidden: "checked"}},
		"texts": {given: map[string]any{"path": "a", "limit": " 3 ", "ratio": "2.5", "deep": "false"},
			want: arguments{Path: "a", Limit: 3, Ratio: 2.5, hidden: "checked"}},
		"wrong types": {given: map[string]any{"path": 1, "limit": 2.5, "ratio": "x", "deep": "maybe", "names": "a", "header": []any{}, "size": []any{}},
			wrong: []string{"deep: expected true or false, got text", "header: expected a mapping, got an empty list", "limit: expected a whole number", "names: expected a list, got text", "path: expected text, got a number", "ratio: expected a number, got text", "size: expected a whole number, got an empty list"}},
		"wrong items": {given: map[string]any{"path": "a", "names": []any{"x", nil}, "header": map[string]any{"b": 1, "a": true}},
			wrong: []string{"header: a: expected text, got a boolean", "names: item 2: expected text, got null"}},
		"unknown":    {given: map[string]any{"paht": "a"}, wrong: []string{`missing key "path"`, "paht: unknown key"}},
		"own checks": {given: map[string]any{"path": "a", "limit": 0}, wrong: []string{"limit: must be at least 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got arguments
			var wrong []string
			for _, e := range spec.DecodeArguments(c.given, &got) {
				wrong = append(wrong, e.Error())
			}
			if d := cmp.Diff(c.wrong, wrong); d != "" {
				t.Error(d)
			}
			if len(c.wrong) == 0 {
				if d := cmp.Diff(c.want, got, cmp.AllowUnexported(arguments{})); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// TestReaders_Defaults: every default in the table has the type of its field, and no two
// readers share a name.
func TestReaders_Defaults(t *testing.T) {
	var names []string
	for _, row := range spec.Readers() {
		names = append(append(names, row.Name), row.Aliases...)
		for _, made := range []func() any{row.Args, row.LoaderArgs} {
			if made == nil {
				continue
			}
			for _, e := range spec.DecodeArguments(nil, made()) {
				if len(e.Missing) == 0 {
					t.Errorf("%s: %v", row.Name, e)
				}
			}
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is used twice: %v", names)
	}
}

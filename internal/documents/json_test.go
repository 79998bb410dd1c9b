package documents_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleJSON has every kind of value.
const sampleJSON = `{"name": "Ada \"A\" L\u00f6we 🐍", "n": 1, "f": 1.50, "big": 1e22, "small": 0.00001, "large": 12345678901234567890, "neg": -0.5, "whole": 3.0,
  "yes": true, "none": null, "list": [1, [2, {"x": "deep"}], []], "empty": {}, "nested": {"a": {"b": "c"}}}`

func TestJSON_Texts(t *testing.T) {
	dir := folder(t, map[string]string{"a.json": `{"a": [1, {"b": "ü"}], "c": {}}`, "rows.jsonl": "{\"a\": 1}\n\n{\"a\": 2.0}\nbroken\n"})
	for name, c := range map[string]struct {
		args map[string]any
		file string
		want []string
	}{
		"clean":     {map[string]any{}, "a.json", []string{"\"a\": [\n1,\n\"b\": \"ü\"\n\"c\": {}"}},
		"ascii":     {map[string]any{"clean_json": false, "ensure_ascii": true}, "a.json", []string{`{"a": [1, {"b": "\u00fc"}], "c": {}}`}},
		"levels":    {map[string]any{"levels_back": int64(0)}, "a.json", []string{"a 1\na b ü"}},
		"one level": {map[string]any{"levels_back": int64(1)}, "a.json", []string{"a 1\nb ü"}},
		"collapse":  {map[string]any{"levels_back": int64(0), "collapse_length": int64(10)}, "a.json", []string{"a 1\na {\"b\": \"ü\"}\nc {}"}},
		"lines":     {map[string]any{"is_jsonl": true, "clean_json": false}, "rows.jsonl", []string{`{"a": 1}`, `{"a": 2.0}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, "json", c.args, map[string]any{"input_file": filepath.Join(dir, c.file), "extra_info": map[string]any{"source": "test"}})
			var texts []string
			for _, d := range got.docs {
				texts = append(texts, d.Text)
				if d.Metadata["source"] != "test" || d.Name != c.file {
					t.Errorf("name %q, metadata %v", d.Name, d.Metadata)
				}
			}
			if d := cmp.Diff(c.want, texts); d != "" || got.err != nil {
				t.Error(d, got.err)
			}
			if name == "lines" && (len(got.failed) != 1 || !strings.Contains(got.failed[0], "rows.jsonl:4: invalid JSON")) {
				t.Errorf("failed: %v", got.failed)
			}
		})
	}
	if got := read(t, "json", nil, map[string]any{"input_file": filepath.Join(dir, "none.json")}); got.err == nil || !strings.Contains(got.err.Error(), "does not exist") {
		t.Errorf("got %v", got.err)
	}
}

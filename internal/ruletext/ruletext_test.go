package ruletext

import (
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec/diag"
)

const complete = "# a title\n\nOne reason\nof two lines.\n\nAnother.\n\n````yaml wrong\na: |\n  ```\n\n````\n\n```yaml right\na: b \n```\n"

func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"rules/QT001.md": {Data: []byte(complete)},
		"rules/QT002.md": {Data: []byte("# another\n\nIt has no example.\n")},
	}
	rules := []diag.Rule{{Code: "QT001", Severity: diag.Warning}, {Code: "QT002"}}
	got, err := read(files, rules)
	want := []diag.Rule{
		{Code: "QT001", Severity: diag.Warning, Title: "a title", Doc: "One reason of two lines.\n\nAnother.", Wrong: "a: |\n  ```\n\n", Right: "a: b \n"},
		{Code: "QT002", Title: "another", Doc: "It has no example."},
	}
	if d := gocmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if rules[0].Title != "" {
		t.Error("the declared rules were changed")
	}
}

func TestRead_Problems(t *testing.T) {
	for name, c := range map[string]struct{ old, text, want string }{
		"no heading":     {"# a title", "a title", "the first line is not a heading"},
		"empty heading":  {"# a title", "# ", "the first line is not a heading"},
		"no reason":      {"One reason\nof two lines.\n\nAnother.", "", "there is no reason"},
		"no wrong side":  {"yaml wrong", "yaml", "the block ```yaml wrong is missing"},
		"no right side":  {"```yaml right\na: b \n```\n", "", "the block ```yaml right is missing"},
		"open block":     {"a: b \n```\n", "a: b \n", "the block ```yaml right is empty, or does not end"},
		"empty block":    {"a: b \n", "", "the block ```yaml right is empty"},
		"text afterward": {"a: b \n```\n", "a: b \n```\n\nMore.\n", "there is text after the right example"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(complete, c.old) {
				t.Fatalf("%q is not in the file", c.old)
			}
			files := fstest.MapFS{"rules/QT001.md": {Data: []byte(strings.Replace(complete, c.old, c.text, 1))}}
			if _, err := read(files, []diag.Rule{{Code: "QT001"}}); err == nil || !strings.HasPrefix(err.Error(), "rules/QT001.md: "+c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	files := fstest.MapFS{"rules/QT001.md": {Data: []byte(complete)}}
	_, err := read(files, []diag.Rule{{Code: "QT002"}})
	want := "rules/QT002.md: open rules/QT002.md: file does not exist\nrules/QT001.md: no rule of the package has this code"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

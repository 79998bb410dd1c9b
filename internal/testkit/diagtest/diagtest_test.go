package diagtest_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// recorder counts failures.
type recorder struct {
	testing.TB
	failures int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }

func TestCheck(t *testing.T) {
	found := func(f *source.File, line int, code, message string) diag.Diagnostic {
		return diag.Diagnostic{Code: code, Message: message, Span: source.Span{File: f, Start: source.Pos{Line: line, Column: 1}}}
	}
	file := func(text string) *source.File { return &source.File{Path: "f", Text: []byte(text)} }
	two := file("a\nb: 1 # want QT1 \"no .*\" QT2 `x`\n")
	for _, c := range []struct {
		name     string
		file     *source.File
		got      diag.List
		failures int
	}{
		{"as wanted", two, diag.List{found(two, 2, "QT2", "x"), found(two, 2, "QT1", "no key")}, 0},
		{"one is missing", two, diag.List{found(two, 2, "QT1", "no key")}, 1},
		{"another message", two, diag.List{found(two, 2, "QT1", "some key"), found(two, 2, "QT2", "x")}, 2},
		{"another line", two, diag.List{found(two, 1, "QT1", "no key"), found(two, 2, "QT2", "x")}, 2},
		{"one too many", two, diag.List{found(two, 2, "QT1", "no key"), found(two, 2, "QT2", "x"), found(two, 2, "QT2", "x")}, 1},
		{"nothing wanted", file("a"), nil, 0},
		{"a bad comment", file("a # want QT1 unquoted"), nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{TB: t}
			diagtest.Check(r, []*source.File{c.file}, c.got)
			if r.failures != c.failures {
				t.Errorf("%d failures, want %d", r.failures, c.failures)
			}
		})
	}
}

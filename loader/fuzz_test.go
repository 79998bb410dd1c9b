package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// FuzzLoadBytes: no text makes the loader panic, or say something that cannot be placed.
func FuzzLoadBytes(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			f.Add(text)
		}
	}
	for _, rule := range loader.Rules() {
		f.Add([]byte(rule.Wrong))
		f.Add([]byte(rule.Right))
	}
	f.Add([]byte("id: &a [*a, !!set {a, b}, ? {x: y}, <<: *a]\n? |\n  x\n: - !!binary aGk="))
	f.Fuzz(func(t *testing.T, text []byte) {
		opts := loader.Options{Lookup: env(someEnv), NoDotEnv: true, Limits: loader.Limits{AliasNodes: 1000}}
		result, list := loader.LoadBytes(t.Context(), "f.yaml", text, opts)
		if result == nil || result.Document == nil {
			t.Fatal("a result is due")
		}
		for _, d := range list {
			lines := strings.Count(string(text), "\n") + 1
			if s := d.Span.Start; s.Line < 0 || s.Line > lines || d.Span.End.Line < s.Line || s.Line > 0 && s.Column < 1 {
				t.Errorf("placed at %v to %v of %d lines: %v", s, d.Span.End, lines, d)
			}
			if d.Span.End.Line == d.Span.Start.Line && d.Span.End.Column < d.Span.Start.Column {
				t.Errorf("ends before it starts: %v to %v", d.Span.Start, d.Span.End)
			}
		}
		var printed strings.Builder
		if err := diag.Text(&printed, list, diag.TextOptions{}); err != nil || !utf8.ValidString(printed.String()) {
			t.Errorf("cannot be printed: %v", err)
		}
	})
}

// FuzzVariables: what is not a variable stays as it is, in every text.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{"${A}", "${A:-x}", "${NONE:-${A}}", "$${", "${:-}", "${A:x}}${A}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			return
		}
		quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
		opts := loader.Options{Lookup: env(map[string]string{"A": "alpha"}), NoDotEnv: true}
		result, list := loader.LoadBytes(t.Context(), "f.yaml", []byte("id: x\ndescription: "+quoted+"\n"), opts)
		for _, d := range list {
			if d.Code != "QT005" && d.Code != "QT013" {
				t.Fatal(list)
			}
		}
		if list.Errors() > 0 {
			return
		}
		got := result.Document.Application.Description
		if !strings.Contains(text, "${") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if strings.Contains(text, "${A}") && !strings.Contains(got, "alpha") && !strings.Contains(text, ":") && strings.Count(text, "{") == 1 {
			t.Errorf("%q became %q", text, got)
		}
	})
}

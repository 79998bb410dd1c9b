package diag_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

var app = &source.File{Path: "app.qtype.yaml", Text: []byte(
	strings.Repeat("\n", 8) + "  - id: chat_memory\n" + strings.Repeat("\n", 14) + "        memory: chat_memry\n")}

// span returns the span of the n-th occurrence of a word in a file, counted from 0.
func span(t *testing.T, f *source.File, word string, n int) source.Span {
	t.Helper()
	at := 0
	for {
		i := strings.Index(string(f.Text[at:]), word)
		if i < 0 {
			t.Fatalf("%q is not in the text", word)
		}
		at += i
		if n == 0 {
			break
		}
		n--
		at += len(word)
	}
	before := string(f.Text[:at])
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
	return source.Span{File: f, Start: source.Pos{Line: line, Column: column}, End: source.Pos{Line: line, Column: column + len([]rune(word))}}
}

func memoryDiagnostic(t *testing.T) diag.Diagnostic {
	rule := diag.Rule{Code: "QT202", Severity: diag.Error}
	return rule.At(span(t, app, "chat_memry", 0), "no memory has the id %q", "chat_memry").
		WithSuggestion(diag.Nearest("chat_memry", []string{"chat_memory", "other"})).
		WithRelated(span(t, app, "chat_memory", 0), "a memory declared here")
}

func text(t *testing.T, opts diag.TextOptions, list ...diag.Diagnostic) string {
	t.Helper()
	var b strings.Builder
	if err := diag.Text(&b, list, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText_ExcerptAndRelated(t *testing.T) {
	want := `error[QT202] app.qtype.yaml:24:17: no memory has the id "chat_memry"
   |
 9 |   - id: chat_memory
   |         ----------- a memory declared here
   :
24 |         memory: chat_memry
   |                 ^^^^^^^^^^ did you mean "chat_memory"?
   |
   = qtype explain QT202
`
	if d := cmp.Diff(want, text(t, diag.TextOptions{}, memoryDiagnostic(t))); d != "" {
		t.Error(d)
	}
}

func TestText_Include(t *testing.T) {
	root := &source.File{Path: "app.yaml", Text: []byte("id: a\nmodels: !include m.yaml\n")}
	inner := &source.File{Path: "m.yaml", Text: []byte("- idd: x\n"), From: span(t, root, "m.yaml", 0)}
	d := diag.Diagnostic{Code: "QT103", Severity: diag.Warning, Span: span(t, inner, "idd", 0), Message: "unknown"}.
		WithRelated(span(t, root, "a", 0), "elsewhere")
	want := `warning[QT103] m.yaml:1:3: unknown
  |
1 | - idd: x
  |   ^^^
  |
  > app.yaml:1:5
  |
1 | id: a
  |     - elsewhere
  |
  = included from app.yaml:2:18
  = qtype explain QT103
`
	if d := cmp.Diff(want, text(t, diag.TextOptions{}, d)); d != "" {
		t.Error(d)
	}
}

func TestText_NoPosition(t *testing.T) {
	d := diag.Diagnostic{Code: "QT001", Severity: diag.Error, Message: "no.yaml does not exist", Hint: "check the path",
		Span: source.Span{File: &source.File{Path: "no.yaml"}}}
	want := "error[QT001] no.yaml does not exist\n  = check the path\n  = qtype explain QT001\n"
	if d := cmp.Diff(want, text(t, diag.TextOptions{}, d)); d != "" {
		t.Error(d)
	}
}

// TestText_Program: a command that a diagnostic names is one of the program that prints it.
func TestText_Program(t *testing.T) {
	d := diag.Diagnostic{Code: "QT103", Severity: diag.Error, Message: "no such key", Hint: "qtype explain Agent lists its keys"}
	want := "error[QT103]: no such key\n  = qtype-check explain Agent lists its keys\n  = qtype-check explain QT103\n"
	if d := cmp.Diff(want, text(t, diag.TextOptions{Program: "qtype-check"}, d)); d != "" {
		t.Error(d)
	}
}

// TestText_CaretUnderWord checks that the caret counts the columns that a terminal
// shows.
func TestText_CaretUnderWord(t *testing.T) {
	for _, c := range []struct{ name, line, shown, caret string }{
		{"tab", "\ta:\tWORD", "    a:  WORD", "        ^^^^"},
		{"wide", "日本: WORD", "日本: WORD", "      ^^^^"},
		{"combining", "e\u0301: WORD", "e\u0301: WORD", "   ^^^^"},
		{"control", "\x1b[31m WORD", `\x1b[31m WORD`, "         ^^^^"},
		{"override", "\u202e WORD", `\u202e WORD`, "       ^^^^"},
		{"carriage return", "a: WORD\r", "a: WORD", "   ^^^^"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &source.File{Path: "f", Text: []byte(c.line + "\n")}
			got := text(t, diag.TextOptions{}, diag.Diagnostic{Code: "QT1", Severity: diag.Error, Span: span(t, f, "WORD", 0)})
			want := "  |\n1 | " + c.shown + "\n  | " + c.caret + "\n  |\n"
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout\n%s", got, want)
			}
		})
	}
}

func TestText_CutsLongLines(t *testing.T) {
	f := &source.File{Path: "f", Text: []byte(strings.Repeat("x", 1<<20) + " WORD " + strings.Repeat("y", 1<<20))}
	got := text(t, diag.TextOptions{Width: 60}, diag.Diagnostic{Code: "QT1", Severity: diag.Error, Span: span(t, f, "WORD", 0)})
	lines := strings.Split(got, "\n")
	for _, line := range lines {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("a line of %d columns", n)
		}
	}
	excerpt, caret := []rune(lines[2]), lines[3]
	at := len([]rune(caret[:strings.Index(caret, "^")]))
	if string(excerpt[at:at+4]) != "WORD" || !strings.HasSuffix(caret, "^^^^") {
		t.Errorf("the caret is not under the word:\n%s\n%s", lines[2], caret)
	}
}

// TestPrinters_EscapeControlCharacters puts terminal escapes everywhere a
// document's text can be printed.
func TestPrinters_EscapeControlCharacters(t *testing.T) {
	const evil = "\x1b]0;title\x07\u009b31m\u202ered\r"
	f := &source.File{Path: evil, Text: []byte("key: " + evil + "\n")}
	at := source.Span{File: f, Start: source.Pos{Line: 1, Column: 6}, End: source.Pos{Line: 1, Column: 9}}
	d := diag.Diagnostic{Code: "QT1", Severity: diag.Error, Span: at, Message: evil, Hint: evil, Suggestion: evil}.WithRelated(at, evil)
	var b strings.Builder
	for _, print := range []func() error{
		func() error { return diag.Text(&b, diag.List{d}, diag.TextOptions{}) },
		func() error { return diag.GitHub(&b, diag.List{d}) },
		func() error { return diag.JSON(&b, diag.List{d}) },
		func() error { return diag.SARIF(&b, diag.List{d}, diag.Tool{}) },
		func() error { _, err := b.WriteString(d.Error()); return err },
	} {
		if err := print(); err != nil {
			t.Fatal(err)
		}
	}
	if i := strings.IndexAny(b.String(), "\x1b\x07\u009b\r"); i >= 0 {
		t.Errorf("unescaped control character in %q", b.String()[max(i-20, 0):i+5])
	}
}

func TestText_ColorKeepsWords(t *testing.T) {
	plain := text(t, diag.TextOptions{}, memoryDiagnostic(t))
	colored := text(t, diag.TextOptions{Color: true}, memoryDiagnostic(t))
	if !strings.Contains(colored, "\x1b[") {
		t.Error("no color escapes")
	}
	for _, code := range []string{"\x1b[1;31m", "\x1b[1;33m", "\x1b[34m", "\x1b[36m", "\x1b[1m", "\x1b[0m"} {
		colored = strings.ReplaceAll(colored, code, "")
	}
	if d := cmp.Diff(plain, colored); d != "" {
		t.Error(d)
	}
}

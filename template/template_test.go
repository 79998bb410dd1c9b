package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/template"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  `0 "plain"`,
		"Hi {name}!":             `0 "Hi " · 3 {name|||} · 9 "!"`,
		"{{a}} {{{a}}}":          `0 "{a} {" · 8 {a|||} · 11 "}"`,
		"{a!r:>8}{b:x!y:z}":      `0 {a|!r|>8} · 8 {b||x!y:z}`,
		"{}":                     `0 {|||}`,
		"{ open":                 `0 unclosed · 1 " open"`,
		"x } y":                  `0 "x " · 2 stray · 3 " y"`,
		"{a:{b}}":                `3 nested · 1 "a:" · 3 {b|||} · 6 stray`,
		"{{x}} {y":               `0 "{x} " · 6 unclosed · 7 "y"`,
		"ü{a}":                   `0 "ü" · 2 {a|||}`,
		strings.Repeat("{{", 40): `0 "` + strings.Repeat("{", 40) + `"`,
	} {
		want = strings.ReplaceAll(want, "|||}", "||}")
		if got := show(template.Parse(text)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// show writes pieces on one line.
func show(pieces []template.Piece) string {
	var all []string
	for _, p := range pieces {
		what := map[template.Kind]string{template.Unclosed: "unclosed", template.Nested: "nested", template.Stray: "stray"}[p.Kind]
		switch p.Kind {
		case template.Literal:
			what = fmt.Sprintf("%q", p.Text)
		case template.Placeholder:
			what = fmt.Sprintf("{%s|%s|%s}", p.Name, p.Conversion, p.Spec)
		}
		all = append(all, fmt.Sprintf("%d %s", p.At, what))
	}
	return strings.Join(all, " · ")
}

// FuzzParse: every byte of a template is in a piece, in order, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{x}", "{{}}", "{x:{x}}", "}{", "{!:}", "a{b!c:d}e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		faults := 0
		for _, p := range template.Parse(text) {
			if p.Kind == template.Literal {
				b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text))
				continue
			}
			if p.Kind >= template.Unclosed {
				faults++
			}
			if !strings.HasPrefix(text[p.At:], p.Text) {
				t.Fatalf("%q does not stand at %d of %q", p.Text, p.At, text)
			}
			b.WriteString(p.Text)
		}
		if b.String() != text {
			t.Fatalf("%q came out as %q", text, b.String())
		}
		if faults == 0 && strings.Count(text, "{") != strings.Count(text, "}") && !strings.Contains(text, "{{") && !strings.Contains(text, "}}") {
			t.Fatalf("no fault in %q", text)
		}
	})
}

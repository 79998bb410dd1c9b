package prompttemplate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
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
		if got := show(prompttemplate.Parse(text)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// show formats pieces on one line.
func show(pieces []prompttemplate.Piece) string {
	var all []string
	for _, p := range pieces {
		what := map[prompttemplate.Kind]string{prompttemplate.Unclosed: "unclosed", prompttemplate.Nested: "nested", prompttemplate.Stray: "stray"}[p.Kind]
		switch p.Kind {
		case prompttemplate.Literal:
			what = fmt.Sprintf("%q", p.Text)
		case prompttemplate.Placeholder:
			what = fmt.Sprintf("{%s|%s|%s}", p.Name, p.Conversion, p.Spec)
		}
		all = append(all, fmt.Sprintf("%d %s", p.At, what))
	}
	return strings.Join(all, " · ")
}

// FuzzParse checks that the pieces cover a template in order and that Parse does
// not panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{x}", "{{}}", "{x:{x}}", "}{", "{!:}", "a{b!c:d}e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		invalid := 0
		for _, p := range prompttemplate.Parse(text) {
			if p.Kind == prompttemplate.Literal {
				b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text))
				continue
			}
			if p.Kind >= prompttemplate.Unclosed {
				invalid++
			}
			if !strings.HasPrefix(text[p.At:], p.Text) {
				t.Fatalf("%q is not at %d of %q", p.Text, p.At, text)
			}
			b.WriteString(p.Text)
		}
		if b.String() != text {
			t.Fatalf("%q came out as %q", text, b.String())
		}
		if invalid == 0 && strings.Count(text, "{") != strings.Count(text, "}") && !strings.Contains(text, "{{") && !strings.Contains(text, "}}") {
			t.Fatalf("no invalid brace in %q", text)
		}
	})
}

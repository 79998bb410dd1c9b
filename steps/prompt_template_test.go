package steps_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// render fills a template with the inputs x, of the given type, and name, a text.
func render(t testing.TB, typ, template string, x any) (string, error) {
	t.Helper()
	l := declare(t, nil, "x: "+typ, "name: text", "out: text")
	s := &spec.PromptTemplate{StepBase: l.base("t", []string{"x", "name"}, []string{"out"}), Template: template}
	r, err := steps.Build(s, &steps.Env{Slots: l})
	if err != nil {
		return "", err
	}
	rows := driveRows(t, r, l.row(map[string]any{"x": x, "name": "Ann"}))
	if rows[0].Err != nil {
		return "", rows[0].Err.Err
	}
	return rows[0].Values[2].(string), nil
}

// The results of Python's str.format for the same specification and value.
func TestFormat_MatchesPython(t *testing.T) {
	tests := []struct {
		format string
		in     any
		want   string
	}{
		{"05d", int64(42), `00042`},
		{"+", int64(42), `+42`},
		{",", int64(1234567), `1,234,567`},
		{"_x", int64(3735928559), `dead_beef`},
		{"#x", int64(255), `0xff`},
		{"#X", int64(255), `0XFF`},
		{"b", int64(5), `101`},
		{"#o", int64(8), `0o10`},
		{"c", int64(65), `A`},
		{"e", int64(1234), `1.234000e+03`},
		{".1f", int64(7), `7.0`},
		{"%", int64(2), `200.000000%`},
		{"010,", int64(1234), `00,001,234`},
		{"^7", int64(42), `  42   `},
		{"*<6", int64(42), `42****`},
		{"=+8", int64(-42), `-     42`},
		{" ", int64(3), ` 3`},
		{"x=6", int64(-5), `-xxxx5`},
		{"08", int64(-42), `-0000042`},
		{"n", int64(10), `10`},
		{"<05", int64(7), `70000`},
		{"g", int64(1234567), `1.23457e+06`},
		{".2f", 3.14159, `3.14`},
		{"", 1.0, `1.0`},
		{".3", 1234.5678, `1.23e+03`},
		{"e", 12345.678, `1.234568e+04`},
		{".0f", 2.5, `2`},
		{"g", 1.234e-05, `1.234e-05`},
		{"g", 1e+20, `1e+20`},
		{"G", 1e-10, `1E-10`},
		{"%", 0.256, `25.600000%`},
		{".1%", 0.256, `25.6%`},
		{"10.2f", -3.14159, `     -3.14`},
		{"010.2f", -3.14159, `-000003.14`},
		{",.2f", 1234567.891, `1,234,567.89`},
		{"+.1e", 0.5, `+5.0e-01`},
		{".6", 123456.0, `1.23456e+05`},
		{".6", 1234567.0, `1.23457e+06`},
		{"#.3g", 1.0, `1.00`},
		{".10g", 1.5, `1.5`},
		{"5", math.Inf(1), `  inf`},
		{"05", math.NaN(), `00nan`},
		{"F", math.Inf(1), `INF`},
		{".1", 5.0, `5e+00`},
		{".2", 5.0, `5.0`},
		{".0e", 12345.0, `1e+04`},
		{"_", 1234567.5, `1_234_567.5`},
		{"015,.2f", 1234567.891, `0,001,234,567.89`},
		{"", 1e+16, `1e+16`},
		{"", 1e-05, `1e-05`},
		{"n", 1234.5, `1234.5`},
		{"g", 100000.0, `100000`},
		{"g", 1000000.0, `1e+06`},
		{".3g", 999.9, `1e+03`},
		{"20", 0.1, `                 0.1`},
		{">5", "ab", `   ab`},
		{"^6", "ab", `  ab  `},
		{"*^7", "ab", `**ab***`},
		{".2", "abcdef", `ab`},
		{"5.2", "abcdef", `ab   `},
		{"05", "ab", `ab000`},
		{"s", "x", `x`},
		{"é<4", "x", `xééé`},
		{"<4", "éé", `éé  `},
		{"d", true, `1`},
		{"5d", true, `    1`},
	}
	for _, tt := range tests {
		typ := "citation_url" // accepts any value, so that none is rejected before
		got, err := render(t, typ, "{x:"+tt.format+"}", tt.in)
		if err != nil || got != tt.want {
			t.Errorf("{x:%s} of %#v: got %q, want %q (%v)", tt.format, tt.in, got, tt.want, err)
		}
	}
}

func TestPromptTemplate(t *testing.T) {
	rec := value.NewRecord("T", value.Field{Name: "b", Value: "x"}, value.Field{Name: "a", Value: int64(1)})
	tests := []struct {
		typ, template string
		in            any
		want          string
	}{
		{"text", "Hi {name}, {x}!", "ü", "Hi Ann, ü!"}, {"text", "{{x}} {{{x}}}", "v", "{x} {v}"}, {"text", "", "v", ""},
		{"text", "constant", "v", "constant"}, {"text?", "[{x}]", nil, "[]"}, {"boolean", "{x}", true, "true"},
		{"float", "{x}", 1.0, "1.0"}, {"list[text]", "{x}", []any{"x", int64(1)}, `["x",1]`}, {"citation_url", "{x}", rec, `{"b":"x","a":1}`},
		{"ChatMessage", "{x}", chat.Text(chat.User, "hello"), "hello"}, {"date", "{x}", value.Date{Year: 2024, Month: 5, Day: 6}, "2024-05-06"},
		{"text", "{x!r} {x!s} {x!a}", "it's é\n", `"it's é\n" it's é` + "\n" + ` "it's \xe9\n"`}, {"text", "{x!r:>6}", "a", "   'a'"},
		{"int", "{x!r}", int64(5), "5"}, {"text", "{x}{x}", "ab", "abab"}, {"boolean", "{x:>5}", true, " true"},
	}
	for _, tt := range tests {
		if got, err := render(t, tt.typ, tt.template, tt.in); err != nil || got != tt.want {
			t.Errorf("%s of %#v: got %q, want %q (%v)", tt.template, tt.in, got, tt.want, err)
		}
	}
}

// Syntax errors are reported with their position when the step is built.
func TestPromptTemplate_SyntaxErrors(t *testing.T) {
	tests := []struct{ typ, template, want string }{
		{"text", "a\nb {", "template line 2, column 3: unclosed {; write {{ for a brace"},
		{"text", "é }", "template line 1, column 3: unmatched }; write }} for a brace"},
		{"text", "{x:{name}}", "template line 1, column 4: { inside a placeholder; placeholders do not nest, write {{ for a brace"},
		{"text", `{"a": 1}`, `template line 1, column 1: no input has the name "\"a\""; inputs are x, name`},
		{"text", "{}", "template line 1, column 1: the placeholder {} has no name; write the name of an input, or {{ }} for braces"},
		{"text", "{0}", "template line 1, column 1: the placeholder {0} has no name; write the name of an input, or {{ }} for braces"},
		{"text", "{ x }", "template line 1, column 1: the placeholder { x } has spaces around its name; write {x}"},
		{"text", "{x.y}", "template line 1, column 1: the placeholder {x.y} accesses a part of x, which templates do not support"},
		{"text", "{x[0]}", "template line 1, column 1: the placeholder {x[0]} accesses a part of x, which templates do not support"},
		{"text", "{y}", `template line 1, column 1: no input has the name "y"; inputs are x, name`},
		{"text", "{x!z}", "template line 1, column 1: placeholder {x!z}: the conversion !z is not one of !s, !r, !a"},
		{"text", "{x:.2f}", "template line 1, column 1: placeholder {x:.2f}: the format needs a number, but the input is text"},
		{"int", "{x:s}", "template line 1, column 1: placeholder {x:s}: the format s needs a text, but the input is int"},
		{"int", "{x:.2}", "template line 1, column 1: placeholder {x:.2}: a whole number takes no precision"},
		{"float", "{x:d}", "template line 1, column 1: placeholder {x:d}: the format d needs a whole number, but the input is float"},
		{"int", "{x:5q}", "template line 1, column 1: placeholder {x:5q}: the format does not have the form [[fill]align][sign][#][0][width][,][.precision][type]"},
		{"int", "{x:99999999}", "template line 1, column 1: placeholder {x:99999999}: 99999999 exceeds the maximum of 10000"},
		{"float", "{x:.f}", "template line 1, column 1: placeholder {x:.f}: missing precision after \".\""},
	}
	for _, tt := range tests {
		_, err := render(t, tt.typ, tt.template, nil)
		var syntax *steps.TemplateError
		if !errors.As(err, &syntax) || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.template, err, tt.want)
		}
	}
}

func TestPromptTemplate_UnsetInput(t *testing.T) {
	l := declare(t, nil, "a: text", "b: text", "out: text")
	for template, want := range map[string]string{"{a}": `{"a":"x","out":"x"}`, "{b}": "error: variable b is not set"} {
		s := &spec.PromptTemplate{StepBase: l.base("t", []string{"a", "b"}, []string{"out"}), Template: template}
		expect(t, template, drive(t, l, build(t, s, &steps.Env{Slots: l}), l.row(map[string]any{"a": "x"})), want)
	}
}

func TestPromptTemplate_FormatFailsRow(t *testing.T) {
	if _, err := render(t, "citation_url", "{x:.2f}", "abc"); err == nil || err.Error() != `placeholder {x:.2f}: the format needs a number, not "abc"` {
		t.Error(err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{x}", "{{}}", "{x:>10.3f}", "{x!r:^5}", "{x:=+#010,.3e}", "{", "}", "{x:{x}}", "{name:é<4}", "{x:_b}"} {
		f.Add(s, 1.5)
		f.Add(s, math.Inf(-1))
	}
	f.Fuzz(func(t *testing.T, template string, x float64) {
		for _, v := range []any{x, int64(x), template, true} {
			out, err := render(t, "citation_url", template, v)
			if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("%q", err)
			}
			if err == nil && !strings.ContainsAny(template, "{}") && out != template {
				t.Fatalf("%q became %q", template, out)
			}
		}
	})
}

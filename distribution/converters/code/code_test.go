package code_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/spec/source"
)

func scan(l code.Language, text string) *code.Source {
	return code.Scan(&source.File{Path: "program", Text: []byte(text)}, l)
}

// show writes an expression in one notation for both languages.
func show(e *code.Expr) string {
	var parts []string
	switch e.Kind {
	case code.Text:
		return fmt.Sprintf("%q", e.Text)
	case code.Number, code.Bool:
		return e.Text
	case code.Null:
		return "null"
	case code.List:
		for _, item := range e.Items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case code.Map:
		for i, item := range e.Items {
			parts = append(parts, show(e.Keys[i])+":"+show(item))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case code.Chain:
		for _, l := range e.Links {
			part := l.Name
			if l.Called {
				var args []string
				for _, a := range l.Args {
					args = append(args, strings.TrimPrefix(a.Name+"=", "=")+show(a.Value))
				}
				part += "(" + strings.Join(args, " ") + ")"
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ".")
	}
	return "?"
}

func TestExpr(t *testing.T) {
	for _, c := range []struct {
		language   code.Language
		text, want string
	}{
		{code.Java, `A.builder().name("a\"b").limit(-1_000L).on(true).build();`, `A.builder().name("a\"b").limit(-1_000L).on(true).build()`},
		{code.Java, `new B<List<String>>("x" + "y", null)`, `B("xy" null)`},
		{code.Java, `id -> C.of(10)`, `C.of(10)`},
		{code.Java, `(a, b) -> { log(); return C.of(a); }`, `C.of(a)`},
		{code.Java, `{"a", "b"}`, `["a" "b"]`},
		{code.Java, "\"\"\"\n    one\n      two\n    \"\"\"", `"one\n  two\n"`},
		{code.Java, `A.f(x ? "a" : "b", 1 /* , */ + 2, // no
			'c')`, `A.f(? ? "c")`},
		{code.Java, `A::b`, `A.b`},
		{code.Java, `a < b`, `?`},
		{code.Python, `f(a="x", b=[1, 2.5,], *c, **d)`, `f(a="x" b=[1 2.5] ? ?)`},
		{code.Python, `{"a": 1, 'b': (1, 2), **rest}`, `?`},
		{code.Python, `{"a": 1, 'b': (1, None)}`, `{"a":1 "b":[1 null]}`},
		{code.Python, "(\n  \"a\" # one\n  'b'\n)", `"ab"`},
		{code.Python, "r'\\d' f'{x}'", `"\\d{x}"`},
		{code.Python, "a.b(1)\nc", `a.b(1)`},
		{code.Python, "await a.b[0].c()", `?`},
		{code.Python, `f([x for x in y])`, `f([?])`},
		{code.Python, `f(`, `f()`},
		{code.Python, `"not closed`, `"not closed"`},
		{code.Python, ``, `?`},
	} {
		e, _ := scan(c.language, c.text).Expr(0)
		if got := show(e); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestAssignedTo(t *testing.T) {
	for _, c := range []struct {
		language   code.Language
		text, want string
	}{
		{code.Java, `var memory = new X();`, "memory"},
		{code.Java, `@Bean Model made(@Value("a") String a, int b) throws E { if (b) { other(); } return X.y(); }`, "made"},
		{code.Java, `f(X.y())`, ""},
		{code.Python, "async def make(a):\n  return X()", "make"},
		{code.Python, "graph = (X())", "graph"},
	} {
		s := scan(c.language, c.text)
		if got := s.AssignedTo(s.Index(0, "X")); got != c.want {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	s := scan(code.Python, "a = '''é\nü'''; ß = b\n\tc\n")
	var got []string
	for _, token := range s.Tokens {
		got = append(got, fmt.Sprint(s.Span(token)))
	}
	want := "program:1:1 program:1:3 program:1:5 program:2:5 program:2:7 program:2:9 program:2:11 program:3:2 program:4:1"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestExpr_Deep reads brackets that are nested deeper than any program has them.
func TestExpr_Deep(t *testing.T) {
	for _, text := range []string{strings.Repeat("f(", 20_000), strings.Repeat("[", 20_000), strings.Repeat("a -> ", 20_000), strings.Repeat("new ", 20_000), strings.Repeat("{x:", 20_000)} {
		for _, l := range []code.Language{code.Java, code.Python} {
			s := scan(l, text)
			s.Expr(0)
			s.AssignedTo(len(s.Tokens) - 1)
		}
	}
}

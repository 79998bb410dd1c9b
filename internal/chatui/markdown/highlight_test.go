package markdown_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/chatui/markdown"
)

// TestRenderer_Code: comments are dim, texts green, numbers yellow and keywords magenta, also
// if they take several lines. A quote without an end, and an apostrophe, begin no text.
func TestRenderer_Code(t *testing.T) {
	for language, c := range map[string]struct{ source, want string }{
		"go":                {"return f(\"a // b\", 0x1F) // c", "<35>return<> f(<32>\"a // b\"<>, <33>0x1F<>) <2>// c<>"},
		"Python title=x":    {"x = '''a\nb''' # it's", "x = <32>'''a<>\n  <32>b'''<> <2># it's<>"},
		"py":                {"f'{a}' if b else 'x\\'y'", "f<32>'{a}'<> <35>if<> b <35>else<> <32>'x\\'y'<>"},
		"js":                {"/* a\nb */ let c = `d\n${e}`;", "<2>/* a<>\n  <2>b */<> <35>let<> c = <32>`d<>\n  <32>${e}`<>;"},
		"rust":              {"fn a<'b>(c: &'b str)", "<35>fn<> a<'b>(c: &'b <35>str<>)"},
		"sql":               {"SELECT a FROM b -- c", "<35>SELECT<> a <35>FROM<> b <2>-- c<>"},
		"json":              {"{\"a\": [1.5, true]}", "{<32>\"a\"<>: [<33>1.5<>, <35>true<>]}"},
		"yaml":              {"a: don't # 'b'\nb: https://c#d", "a: don't <2># 'b'<>\n  b: https://c#d"},
		"sh":                {"echo \"$a\" $#", "<35>echo<> <32>\"$a\"<> $#"},
		"c":                 {"char a = 'x'; \"open", "<35>char<> a = <32>'x'<>; \"open"},
		"html":              {"<a b=\"c\">it's</a><!-- d", "<a b=<32>\"c\"<>>it's</a><2><!-- d<>"},
		"of-something-else": {"if 1", "<36>if 1<>"},
	} {
		want := "<2>" + language + "<>\n  " + c.want + "\nend"
		for _, piece := range []int{3, 1000} {
			got := render("```"+language+"\n"+c.source+"\n```\nend", piece, 80, true)
			if diff := cmp.Diff("  "+want, got); diff != "" {
				t.Errorf("%s in pieces of %d bytes:\n%s", language, piece, diff)
			}
		}
	}
}

// FuzzRenderer_Code: colors change no text.
func FuzzRenderer_Code(f *testing.F) {
	for _, seed := range []string{"a 'b\" /* c", "''' x", "<!-- -- # ; \\", "漢字\"漢", "1.2.3_4e", "'\\"} {
		f.Add("python", seed)
		f.Add("sql", seed)
		f.Add("html", seed)
	}
	f.Fuzz(func(t *testing.T, language, text string) {
		if strings.ContainsAny(language, "\n\x1b`\r~") || strings.ContainsAny(text, "\n\x1b`\r\t~") || !regexp.MustCompile(`^[a-z]+$`).MatchString(language) {
			return
		}
		r := markdown.Renderer{Width: 1 << 20, Color: true}
		r.Write("```" + language + "\n")
		got := strings.Join(r.Write(text+"\n"), "\n")
		got = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(got, "")
		if strings.TrimRight(got, " ") != strings.TrimRight("  "+text, " ") {
			t.Errorf("%q in %s is shown as %q", text, language, got)
		}
	})
}

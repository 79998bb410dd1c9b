package markdown_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/chatui/markdown"
)

// render returns the lines of a text that arrives in pieces of some bytes, joined. Styles are
// marked as <1>text<>.
func render(text string, piece, width int, color bool) string {
	r := markdown.Renderer{Width: width, Color: color}
	var lines []string
	for text != "" {
		n := min(piece, len(text))
		lines = append(lines, r.Write(text[:n])...)
		_ = r.Pending()
		text = text[n:]
	}
	lines = append(lines, r.Flush()...)
	return regexp.MustCompile("\x1b\\[([0-9;]*)m").ReplaceAllString(strings.Join(lines, "\n"), "<$1>")
}

func TestRenderer(t *testing.T) {
	for source, want := range map[string]string{
		"plain":                                 "plain",
		"# Title":                               "<1;4>Title<>",
		"## Part **x**":                         "<1>Part x<>",
		"**bold** and *it* `c**d`":              "<1>bold<> and <3>it<> <36>c**d<>",
		"***both*** ~~gone~~":                   "<1;3>both<> <9>gone<>",
		"2 * 3 * 4 a_b_c":                       "2 * 3 * 4 a_b_c",
		"**not closed":                          "**not closed",
		`\*no\* [a](http://b)`:                  "*no* <4>a<><2> (http://b)<>",
		"[http://b](http://b)":                  "<4>http://b<>",
		"- one\n- **two**\n  - three":           "<35>• <>one\n<35>• <><1>two<>\n<35>  • <>three",
		"1. one\n- [x] done\n- [ ] open":        "<35>1. <>one\n<35>☑ <>done\n<35>☐ <>open",
		"> text":                                "<2>│ <><3>text<>",
		"---":                                   "<2>" + strings.Repeat("─", 20) + "<>",
		"```go\na := *b\n\n```\nend":            "  <2>go<>\n  a := *b\n\nend",
		"```\na := *b\n```\nend":                "  <36>a := *b<>\nend",
		"```\nnot closed":                       "  <36>not closed<>",
		"a word that is wrapped":                "a word that is\nwrapped",
		"- a word that is wrapped":              "<35>• <>a word that is\n  wrapped",
		"**a word that is bold**":               "<1>a word that is bold<>",
		"漢字漢字漢字漢字漢字漢字":                          "漢字漢字漢字漢字漢字\n漢字",
		"| a | b |\n|---|--:|\n| x | 1 |\nend":  "<1>a<>  <1>b<>\n<2>────<>\nx  1\nend",
		"| a\n| b":                              "| a\n| b",
		"| a | b |\n|---|---|\n| x \\| y | z |": "<1>a<>      <1>b<>\n<2>────────<>\nx | y  z",
	} {
		for _, piece := range []int{1, 7, 1000} {
			if diff := cmp.Diff(want, render(source, piece, 20, true)); diff != "" {
				t.Errorf("%q in pieces of %d bytes:\n%s", source, piece, diff)
			}
		}
	}
}

// Without colors the marks stay: they carry what the styles would.
func TestRenderer_NoColor(t *testing.T) {
	source := "# Title\n- **bold** and a long line\n```go\nx\n```\n| a | b |\n|--|--|\n| x | y |"
	want := "# Title\n- **bold** and a\n  long line\n```go\nx\n```\na  b\n────\nx  y"
	if diff := cmp.Diff(want, render(source, 5, 20, false)); diff != "" {
		t.Error(diff)
	}
}

// TestRenderer_LongMark checks that the marks of a code block are not wider than the terminal.
func TestRenderer_LongMark(t *testing.T) {
	for _, color := range []bool{false, true} {
		r := markdown.Renderer{Width: 20, Color: color}
		text := "````" + strings.Repeat("v", 100) + "\ncode\n" + strings.Repeat("`", 100) + "\n"
		for _, line := range append(r.Write(text), r.Flush()...) {
			if ansi.StringWidth(line) > 20 {
				t.Errorf("color %t: %q has %d columns", color, line, ansi.StringWidth(line))
			}
		}
	}
}

func TestRenderer_Pending(t *testing.T) {
	r := markdown.Renderer{Width: 20, Color: false}
	if got := r.Write("done\nnot "); len(got) != 1 || got[0] != "done" {
		t.Errorf("got %q", got)
	}
	if got := r.Pending(); len(got) != 1 || got[0] != "not" {
		t.Errorf("got %q", got)
	}
	r.Write(strings.Repeat("漢", 100_000))
	if got := strings.Join(r.Pending(), ""); len(got) > 4096 || !strings.HasPrefix(got, "漢") {
		t.Errorf("%d bytes are pending", len(got))
	}
}

func FuzzRenderer(f *testing.F) {
	for _, seed := range []string{"**a** _b_ `c`", "| a |\n|--|\n| 漢 |", "```\n", "- x\n> y", "[a](b)", "* * *"} {
		f.Add(seed, 3, true)
	}
	f.Fuzz(func(t *testing.T, text string, piece int, color bool) {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return -1
			}
			return r
		}, strings.ToValidUTF8(text, ""))
		r := markdown.Renderer{Width: 20, Color: color}
		lines := append(r.Write(text), r.Flush()...)
		for _, line := range lines {
			if ansi.StringWidth(line) > 20+40 {
				t.Errorf("%q: a line of %d columns", text, ansi.StringWidth(line))
			}
			if strings.Contains(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(line, ""), "\x1b") {
				t.Errorf("%q: a sequence in %q", text, line)
			}
		}
	})
}

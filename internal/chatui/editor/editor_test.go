package editor_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/chatui/editor"
)

// typed applies keys to an editor: names in brackets, other text as typed. It returns the
// text with | at the cursor.
func typed(keys string) string {
	var e editor.Editor
	for keys != "" {
		name, rest, isKey := strings.Cut(strings.TrimPrefix(keys, "["), "]")
		switch begins := strings.Index(keys, "["); {
		case begins < 0 || begins == 0 && !isKey:
			e.Insert(keys)
			keys = ""
			continue
		case begins > 0:
			e.Insert(keys[:begins])
			keys = keys[begins:]
			continue
		}
		switch name {
		case "up":
			e.Up()
		case "down":
			e.Down()
		default:
			e.Key(name)
		}
		keys = rest
	}
	return e.Before() + "|" + strings.TrimPrefix(e.Text(), e.Before())
}

func TestEditor_Keys(t *testing.T) {
	for keys, want := range map[string]string{
		"hello":                           "hello|",
		"helo[left]l":                     "hell|o",
		"bc[home]a[end]d":                 "abcd|",
		"ab[left][left][left]x":           "x|ab",
		"ab[right]c":                      "abc|",
		"abc[left][backspace]":            "a|c",
		"abc[left][delete]":               "ab|",
		"[backspace][delete]":             "|",
		"one two[ctrl+left]x":             "one x|two",
		"one two[ctrl+a][alt+f]x":         "onex| two",
		"one two-three[ctrl+w]":           "one |",
		"one two[ctrl+u]":                 "|",
		"one two[ctrl+u][ctrl+y][ctrl+y]": "one twoone two|",
		"one two[ctrl+left][ctrl+k]":      "one |",
		"one two[ctrl+a][alt+d]":          "| two",
		"a[ctrl+j]b":                      "a\nb|",
		"abc[ctrl+j]d[up]x":               "ax|bc\nd",
		"a[ctrl+j]bcd[up][down]x":         "a\nbx|cd",
		"a[up]x":                          "ax|",
		"a[down]x":                        "ax|",
		"ab[ctrl+j]cd[home][end]x":        "ab\ncdx|",
		"ab[ctrl+j]cd[home]x":             "ab\nx|cd",
	} {
		if got := typed(keys); got != want {
			t.Errorf("%q: got %q, want %q", keys, got, want)
		}
	}
}

func TestEditor_Characters(t *testing.T) {
	for keys, want := range map[string]string{
		"漢字[left][backspace]":              "|字",
		"e\u0301x[left][backspace]":        "|x", // a letter with a combining accent
		"👨‍👩‍👧![left][backspace]":          "|!", // a family, one character of five code points
		"🇩🇪🇫🇷[backspace]":                  "🇩🇪|",
		"e[left]x[right]\u0301[backspace]": "x|", // the accent joins the letter before it
		"a\r\nb\rc":                        "a\nb\nc|",
		"a\x1b]52;c;eA==\x07b\x00":         "a]52;c;eA==b|",
		"a\xffb":                           "a\uFFFDb|",
	} {
		if got := typed(keys); got != want {
			t.Errorf("%q: got %q, want %q", keys, got, want)
		}
	}
}

func TestEditor_Replace(t *testing.T) {
	var e editor.Editor
	e.Set("/session al now")
	for range " now" {
		e.Key("left")
	}
	e.Replace(len("/session "), "alpha")
	if got := e.Before() + "|" + strings.TrimPrefix(e.Text(), e.Before()); got != "/session alpha| now" {
		t.Errorf("got %q", got)
	}
	if e.Key("f1") || e.Empty() {
		t.Error("an unknown key edited")
	}
}

func FuzzEditor(f *testing.F) {
	f.Add("a漢[left]e\u0301[ctrl+w][up]")
	f.Fuzz(func(t *testing.T, keys string) {
		if got := typed(keys); strings.ContainsAny(got, "\x1b\r\x00") {
			t.Errorf("%q: a control character in %q", keys, got)
		}
	})
}

package textfmt_test

import (
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// TestBoundary checks that a text is cut between characters, and near the place if it is not UTF-8.
func TestBoundary(t *testing.T) {
	for _, c := range []struct {
		text    string
		n, want int
	}{{"abc", 2, 2}, {"aé", 2, 1}, {"a🎉b", 4, 1}, {"a🎉b", 5, 5}, {"abc", 0, 0}, {"abc", 3, 3}, {"a\x80\x80\x80\x80\x80\x80", 6, 6}, {"\x80\x80", 1, 1}} {
		if got := textfmt.Boundary(c.text, c.n); got != c.want {
			t.Errorf("Boundary(%q, %d) = %d, want %d", c.text, c.n, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0":           textfmt.Thousands(0),
		"999":         textfmt.Thousands(999),
		"-999":        textfmt.Thousands(-999),
		"1,000":       textfmt.Thousands(1000),
		"-36,102":     textfmt.Thousands(int64(-36102)),
		"1,234,567":   textfmt.Thousands(1234567),
		"1 file":      textfmt.Count(1, "file"),
		"0 files":     textfmt.Count(0, "file"),
		"2,304 files": textfmt.Count(2304, "file"),
		"812 B":       textfmt.Bytes(812),
		"1.5 kB":      textfmt.Bytes(1536),
		"20.0 MB":     textfmt.Bytes(20 << 20),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for want, got := range map[string]string{
		"none":   textfmt.List(nil),
		"a, b":   textfmt.List([]string{"a", "b"}),
		"a b c":  textfmt.OneLine(" a\n b\t\tc "),
		"äö":     textfmt.Ellipsis("äö", 2),
		"a list": textfmt.JSONKind([]byte(" [1]")), "null": textfmt.JSONKind([]byte("null")), "a number": textfmt.JSONKind([]byte("-1")),
		"ä…": textfmt.Ellipsis("äöü", 2),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for want, got := range map[string]string{
		"1 ms":        textfmt.Duration(time.Microsecond),
		"5.1 s":       textfmt.Duration(5100 * time.Millisecond),
		"2 min 30 s":  textfmt.Duration(150 * time.Second),
		"1.5 µs":      textfmt.ShortDuration(1500),
		"350 µs":      textfmt.ShortDuration(350 * time.Microsecond),
		"2.0 ms":      textfmt.ShortDuration(2 * time.Millisecond),
		"20 ms":       textfmt.ShortDuration(20 * time.Millisecond),
		"just now":    textfmt.Ago(time.Second),
		"5 min ago":   textfmt.Ago(5 * time.Minute),
		"47 h ago":    textfmt.Ago(47 * time.Hour),
		"2 days ago":  textfmt.Ago(49 * time.Hour),
		"31 days ago": textfmt.Ago(31 * 24 * time.Hour),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, first, rest, want string }{
		{"one two  three four", "", "  ", "one two\n  three\n  four\n"},
		{"one two", "- ", "  ", "- one\n  two\n"},
		{"über äöü", "", "", "über äöü\n"},
		{"a-word-that-is-too-long", "> ", "> ", "> a-word-that-is-too-long\n"},
		{"", "> ", "", "> \n"},
	} {
		if got := textfmt.Wrap(c.text, 8, c.first, c.rest); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

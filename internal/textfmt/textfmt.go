// Package textfmt formats numbers, durations and lists for messages.
package textfmt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Thousands formats n with commas: 36,102.
func Thousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	first := 1 // the first position at which a comma may be
	if n < 0 {
		first = 2
	}
	for i := len(digits) - 3; i >= first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Count formats n things: "1 file", "2,304 files". noun is the singular of a noun
// whose plural ends in s.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// List joins names with commas: "a, b"; "none" if there are none.
func List(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ByteOffset returns the byte at which the n-th character of a text begins, its length if it has
// fewer.
func ByteOffset(text string, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// Boundary returns the place at or before n where a character of a text may be cut: at most three
// bytes before n, also in a text that is not UTF-8.
func Boundary(text string, n int) int {
	for at := n; at > 0 && at > n-utf8.UTFMax && at < len(text); at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return n
}

// OneLine replaces each run of white space by a single space, and invalid UTF-8 by
// U+FFFD.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

// JSONKind returns the type of a JSON text by its first character: "a list".
func JSONKind(text []byte) string {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return "nothing"
	}
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Ellipsis cuts text to at most max characters, the last of which is then "…".
func Ellipsis(text string, max int) string {
	if runes := []rune(text); len(runes) > max {
		return string(runes[:max-1]) + "…"
	}
	return text
}

// Bytes formats a size: "812 B", "1.4 kB", "20.0 MB".
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// Duration formats the time that a command took: "1 ms", "5.1 s", "2 min 30 s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// Took returns " (18 ms)" for the end of a line; empty if no time was measured.
func Took(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d ms)", max(d.Milliseconds(), 1))
}

// ShortDuration formats the time of one operation in three digits: "1.4 µs",
// "350 µs", "2.0 ms"; as Duration from 10 ms.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return Duration(d)
}

// Ago formats how long ago something happened: "just now", "5 min ago".
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return Count(int(d.Hours()/24), "day") + " ago"
}

// Wrap breaks a text at its spaces into lines of at most width characters, longer words aside. The first line
// begins with first, the others with rest.
func Wrap(text string, width int, first, rest string) string {
	var b strings.Builder
	b.WriteString(first)
	column := utf8.RuneCountInString(first)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + rest)
			column = utf8.RuneCountInString(rest)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

// Amount returns a sum of money or another small quantity with four significant digits and
// without an exponent: 12.35, 0.0000282.
func Amount(x float64) string {
	const digits = 4
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return Number(x)
	}
	decimals := max(digits-1-int(math.Floor(math.Log10(math.Abs(x)))), 0)
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64) // without zeros at the end
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// CompactJSON returns a value as JSON in one line. The characters <, > and & are not escaped.
func CompactJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// WriteJSON writes a value as JSON with an indentation of two spaces and a line feed at the
// end. The characters <, > and & are not escaped.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// Kind names the type of a value that was decoded from YAML or JSON, without the value, which may be secret.
func Kind(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int, int64, float64:
		return "a number"
	case []any:
		if len(x) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	return "a mapping"
}

// Number formats a number for people and for JSON: the shortest digits that are read as x, and
// an exponent only below 1e-6 and from 1e21.
func Number(x float64) string { return string(AppendNumber(nil, x)) }

// AppendNumber appends Number(x) to b.
func AppendNumber(b []byte, x float64) []byte {
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, x, format, -1, 64)
}

// WithoutPath returns an error of the file system without the operation and the path, for
// messages that name the file.
func WithoutPath(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}

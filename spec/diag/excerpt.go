package diag

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/spec/source"
)

// tabWidth is the distance of tab stops in excerpts.
const tabWidth = 4

// ellipsis marks where a line is cut. It is one column wide.
const ellipsis = "…"

// excerptLine returns the line where a span begins, cut to a number of columns
// around the span, the number of columns before the span, and the number of columns
// under it (at least one).
func excerptLine(l shownLine, s source.Span, columns int) (shown string, before, under int) {
	line := l.text
	from := min(max(l.start(s.Start.Column-1), 0), len(line))
	to := len(line)
	if s.End.Line == s.Start.Line {
		to = min(max(l.end(s.End.Column-1), from), len(line))
	}
	// Only the visible part is drawn, as a line can be a megabyte long. A third of
	// the columns is for the text before the span.
	first, last := 0, min(len(line), from+columns)
	if width(line[:min(len(line), columns+1)]) > columns || len(line) > columns {
		first = backward(line, from, columns/3)
		last = forward(line, first, columns-2*len([]rune(ellipsis)))
	}
	var b strings.Builder
	if first > 0 {
		b.WriteString(ellipsis)
		before++
	}
	column := 0
	for i := first; i < last; i++ {
		drawn, w := draw(line[i], column)
		b.WriteString(drawn)
		switch {
		case i < from:
			before += w
		case i < to:
			under += w
		}
		column += w
	}
	if last < len(line) {
		b.WriteString(ellipsis)
	}
	return b.String(), before, max(under, 1)
}

// draw returns a character as shown at a column, and its width in columns.
func draw(r rune, column int) (string, int) {
	switch {
	case r == '\t':
		n := tabWidth - column%tabWidth
		return strings.Repeat(" ", n), n
	case unprintable(r):
		s := escape(r)
		return s, len(s)
	}
	return string(r), runewidth.RuneWidth(r)
}

func width(line []rune) int {
	column := 0
	for _, r := range line {
		_, w := draw(r, column)
		column += w
	}
	return column
}

// backward returns the index at which about the given number of columns precede
// from.
func backward(line []rune, from, columns int) int {
	for ; from > 0 && columns > 0; from-- {
		_, w := draw(line[from-1], 0)
		columns -= w
	}
	return from
}

// forward returns the index at which at most the given number of columns follow
// from.
func forward(line []rune, from, columns int) int {
	column := 0
	for ; from < len(line); from++ {
		_, w := draw(line[from], column)
		if column += w; column > columns {
			return from
		}
	}
	return from
}

// escapeControl replaces characters that control a terminal (control characters,
// bidirectional overrides) by escapes such as \x1b or \u202e. Tabs remain: the
// printers expand them.
func escapeControl(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			b.WriteString(escape(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// redaction replaces secrets. Its length does not depend on the secret.
const redaction = "***"

// shownLine is a line of an excerpt with its secrets redacted.
type shownLine struct {
	text   []rune
	hidden [][2]int // ranges of the original line, from and to in characters, in order
}

// lineOf returns line n of a file with secrets redacted.
func lineOf(f *source.File, n int) shownLine {
	line := []rune(f.Line(n))
	l := shownLine{hidden: hiddenIn(f, n, line)}
	if len(l.hidden) == 0 {
		l.text = line
		return l
	}
	at := 0
	for _, h := range l.hidden {
		l.text = append(append(l.text, line[at:h[0]]...), []rune(redaction)...)
		at = h[1]
	}
	l.text = append(l.text, line[at:]...)
	return l
}

// hiddenIn returns the ranges of a line that contain secrets, adjacent ones merged.
func hiddenIn(f *source.File, n int, line []rune) [][2]int {
	var all [][2]int
	for _, s := range f.Hidden() {
		if s.Start.Line > n || s.End.Line < n {
			continue
		}
		from, to := indentOf(line), len(line)
		if s.Start.Line == n {
			from = s.Start.Column - 1
		}
		if s.End.Line == n {
			to = min(s.End.Column-1, len(line))
		}
		if from < to {
			all = append(all, [2]int{from, to})
		}
	}
	slices.SortStableFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	joined := all[:0]
	for _, h := range all {
		if last := len(joined) - 1; last >= 0 && h[0] <= joined[last][1] {
			joined[last][1] = max(joined[last][1], h[1])
			continue
		}
		joined = append(joined, h)
	}
	return joined
}

func indentOf(line []rune) int {
	n := slices.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '\t' })
	return max(n, 0)
}

// start maps the start of a span from the original line to the shown one; inside a
// secret it is the start of the redaction.
func (l shownLine) start(at int) int {
	start, _ := l.shown(at)
	return start
}

// end maps the end of a span from the original line to the shown one; inside a
// secret it is the end of the redaction.
func (l shownLine) end(at int) int {
	end, inside := l.shown(at)
	if inside {
		end += len(redaction)
	}
	return end
}

// shown maps a column of the original line to the shown one; for a column inside a
// secret it returns the start of the redaction.
func (l shownLine) shown(at int) (now int, inside bool) {
	shift := 0
	for _, h := range l.hidden {
		switch {
		case at >= h[1]:
			shift += len(redaction) - (h[1] - h[0])
		case at > h[0]:
			return h[0] + shift, true
		}
	}
	return at + shift, false
}

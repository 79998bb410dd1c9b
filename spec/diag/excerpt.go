package diag

import (
	"strings"

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

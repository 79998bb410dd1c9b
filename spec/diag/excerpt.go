package diag

import (
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/spec/source"
)

// tabWidth is how far apart tab stops are drawn.
const tabWidth = 4

// ellipsis stands where a line is cut; it is one column wide.
const ellipsis = "…"

// cut answers the line where a span begins as it is shown in so many columns, how
// many columns stand before the span, and how many are under it: at least one,
// and no more than the shown line has.
func cut(l shownLine, s source.Span, columns int) (shown string, before, under int) {
	line := l.text
	from := min(max(l.start(s.Start.Column-1), 0), len(line))
	to := len(line)
	if s.End.Line == s.Start.Line {
		to = min(max(l.end(s.End.Column-1), from), len(line))
	}
	// Only what can be seen is drawn, be the line a megabyte: a third of the
	// columns is for what stands before the span.
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

// draw is how a character is shown at a column, and how wide that is.
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

// backward finds where to start so that about so many columns stand before from.
func backward(line []rune, from, columns int) int {
	for ; from > 0 && columns > 0; from-- {
		_, w := draw(line[from-1], 0)
		columns -= w
	}
	return from
}

// forward finds where to stop so that no more than so many columns are drawn.
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

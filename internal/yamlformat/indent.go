package yamlformat

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
)

// indentWidth is the number of spaces per level.
const indentWidth = 2

// indenter shifts lines to the column of their level.
type indenter struct {
	text      string
	rows      []string
	start     []int // the offset of each line
	shift     []int // how far each line moves, in columns
	hasShift  []bool
	spaceRuns []spaceRun
}

// spaceRun is a run of spaces within a line that becomes one space, or none before a colon.
type spaceRun struct {
	row, from, to int
	isRemoved     bool
}

// indent indents each level by two spaces and puts one space after colons and
// dashes. The lines of scalars and brackets move with their key, comments with the
// line below.
func indent(text string) string {
	x := &indenter{text: text, rows: strings.Split(text, "\n")}
	x.shift, x.hasShift = make([]int, len(x.rows)), make([]bool, len(x.rows))
	at := 0
	for _, row := range x.rows {
		x.start = append(x.start, at)
		at += len(row) + 1
	}
	x.placeCollection(outline.Parse(text), 0)
	x.placeComments()
	return x.apply()
}

// row returns the line of an offset.
func (x *indenter) row(offset int) int {
	low, high := 0, len(x.start)-1
	for low < high {
		mid := (low + high + 1) / 2
		if x.start[mid] <= offset {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// column returns the column of an offset.
func (x *indenter) column(offset int) int { return offset - x.start[x.row(offset)] }

// setShift sets how far a line moves, unless it is set already.
func (x *indenter) setShift(row, by int) {
	if !x.hasShift[row] {
		x.hasShift[row], x.shift[row] = true, by
	}
}

// placeCollection moves a block collection to a column.
func (x *indenter) placeCollection(n *outline.Node, column int) {
	if n.Flow {
		return
	}
	for _, p := range n.Pairs {
		by := column - x.column(p.Start)
		if x.isFirstOnLine(p.Start) {
			x.setShift(x.row(p.Start), by)
		}
		x.placeValue(p.Value, x.removeSpaces(p.Start, p.End)+1, by, column)
	}
	for _, item := range n.Items {
		by := column - x.column(item.Dash)
		if x.isFirstOnLine(item.Dash) {
			x.setShift(x.row(item.Dash), by)
		}
		x.placeValue(item, item.Dash+1, by, column)
	}
}

// isFirstOnLine reports whether only spaces precede an offset on its line.
func (x *indenter) isFirstOnLine(offset int) bool {
	return strings.TrimLeft(x.text[x.start[x.row(offset)]:offset], " ") == ""
}

// placeValue moves the value of a key or dash that moves by the given number of
// columns.
func (x *indenter) placeValue(n *outline.Node, after, by, column int) {
	if n.Kind == outline.Empty {
		return
	}
	if (n.Kind == outline.Mapping || n.Kind == outline.Sequence) && !n.Flow {
		x.collapseSpaces(after, n.Start)
		x.placeCollection(n, column+indentWidth)
		return
	}
	x.collapseSpaces(after, n.Start)
	for row := x.row(after) + 1; row <= x.row(max(n.End-1, n.Start)); row++ {
		x.setShift(row, by)
	}
}

// removeSpaces removes the spaces between a key and its colon, and returns the offset of the
// colon. An alias as a key needs one: without it, the colon is a part of its name.
func (x *indenter) removeSpaces(start, end int) (colon int) {
	colon = end
	for colon < len(x.text) && x.text[colon] == ' ' {
		colon++
	}
	if colon == len(x.text) || x.text[colon] != ':' {
		return end
	}
	if row := x.row(end); colon > end && x.text[start] != '*' {
		x.spaceRuns = append(x.spaceRuns, spaceRun{row: row, from: end - x.start[row], to: colon - x.start[row], isRemoved: true})
	}
	return colon
}

// collapseSpaces replaces the spaces between a colon or dash and its value on the
// same line by one space, also around a tag or an anchor.
func (x *indenter) collapseSpaces(after, start int) {
	row := x.row(after)
	if x.row(start) != row || start <= after {
		return
	}
	for from := after; from < start; from++ {
		to := from
		for to < start && x.text[to] == ' ' {
			to++
		}
		if to-from > 1 {
			x.spaceRuns = append(x.spaceRuns, spaceRun{row: row, from: from - x.start[row], to: to - x.start[row]})
		}
		from = max(from, to-1)
	}
}

// placeComments moves comment lines together with the lines they are about.
func (x *indenter) placeComments() {
	for i, row := range x.rows {
		content := strings.TrimLeft(row, " ")
		if x.hasShift[i] || !strings.HasPrefix(content, "#") {
			continue
		}
		column := len(row) - len(content)
		if by, ok := x.commentTarget(i, column); ok {
			x.setShift(i, by)
		}
	}
}

// commentTarget returns how far the line moves that a comment is about: the next
// line at the same column, otherwise the nearest one before.
func (x *indenter) commentTarget(row, column int) (by int, ok bool) {
	for i := row + 1; i < len(x.rows); i++ {
		content := strings.TrimLeft(x.rows[i], " ")
		if content == "" || content[0] == '#' || !x.hasShift[i] {
			continue
		}
		if len(x.rows[i])-len(content) == column {
			return x.shift[i], true
		}
		break
	}
	for i := row - 1; i >= 0; i-- {
		content := strings.TrimLeft(x.rows[i], " ")
		if content != "" && x.hasShift[i] && len(x.rows[i])-len(content) == column {
			return x.shift[i], true
		}
	}
	return 0, false
}

// apply returns the text with its lines moved.
func (x *indenter) apply() string {
	for i := len(x.spaceRuns) - 1; i >= 0; i-- {
		j := x.spaceRuns[i]
		space := " "
		if j.isRemoved {
			space = ""
		}
		x.rows[j.row] = x.rows[j.row][:j.from] + space + x.rows[j.row][j.to:]
	}
	for i, row := range x.rows {
		switch by := x.shift[i]; {
		case strings.TrimSpace(row) == "" && by != 0:
			// An empty line of a block scalar may contain spaces beyond its
			// indentation.
			x.rows[i] = strings.Repeat(" ", max(len(strings.TrimRight(row, "\r"))+by, 0)) + row[len(strings.TrimRight(row, "\r")):]
			if strings.TrimRight(row, "\r") == "" {
				x.rows[i] = row
			}
		case by > 0:
			x.rows[i] = strings.Repeat(" ", by) + row
		case by < 0:
			blanks := len(row) - len(strings.TrimLeft(row, " "))
			x.rows[i] = row[min(-by, blanks):]
		}
	}
	return strings.Join(x.rows, "\n")
}

package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// minWidth is the least number of columns that lines are broken to.
const minWidth = 10

// width returns the columns that a text takes.
func width(text string) int { return ansi.StringWidth(text) }

// cell is a character with its style.
type cell struct {
	text  string
	style style
	width int
}

func cellsOf(spans ...span) []cell {
	var cells []cell
	for _, s := range spans {
		for it := graphemes.FromString(strings.ReplaceAll(s.text, "\t", "    ")); it.Next(); {
			cells = append(cells, cell{it.Value(), s.style, width(it.Value())})
		}
	}
	return cells
}

func columns(cells []cell) int {
	n := 0
	for _, c := range cells {
		n += c.width
	}
	return n
}

// wrap breaks spans into lines at spaces, or anywhere in a word that is longer than a line.
func (r *Renderer) wrap(spans []span, first, rest span) []string {
	return r.lines(cellsOf(spans...), cellsOf(first), cellsOf(rest), lastSpace)
}

// wrapExact breaks spans only where a line is full.
func (r *Renderer) wrapExact(spans []span, prefix span) []string {
	return r.lines(cellsOf(spans...), cellsOf(prefix), cellsOf(prefix), func([]cell) int { return -1 })
}

// lastSpace returns the position of the last space after other characters, or -1.
func lastSpace(line []cell) int {
	for i := len(line) - 1; i > 0; i-- {
		if line[i].text == " " {
			return i
		}
	}
	return -1
}

// lines breaks cells into lines with prefixes. breakAt returns the cell of a line that is too
// long after which it ends, or -1.
func (r *Renderer) lines(cells, prefix, next []cell, breakAt func([]cell) int) []string {
	room := max(r.Width-columns(prefix), minWidth)
	var all []string
	var line []cell
	used := 0
	for _, c := range cells {
		if used+c.width > room && len(line) > 0 {
			end, from := len(line), len(line)
			if c.text == " " {
				from = end
			} else if i := breakAt(line); i >= 0 {
				end, from = i, i+1
			}
			all = append(all, r.print(append(prefix[:len(prefix):len(prefix)], line[:end]...)))
			line = append([]cell(nil), line[from:]...)
			used, prefix = columns(line), next
			if c.text == " " && len(line) == 0 && breakAt([]cell{{}, {text: " "}}) >= 0 {
				continue
			}
		}
		line = append(line, c)
		used += c.width
	}
	return append(all, r.print(append(prefix[:len(prefix):len(prefix)], line...)))
}

// print returns cells as text with the sequences of their styles.
func (r *Renderer) print(cells []cell) string {
	var b strings.Builder
	var current style
	for _, c := range cells {
		if c.style != current && r.Color {
			if current != 0 {
				b.WriteString("\x1b[m")
			}
			if c.style != 0 {
				b.WriteString(c.style.open())
			}
			current = c.style
		}
		b.WriteString(c.text)
	}
	if current != 0 {
		b.WriteString("\x1b[m")
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

package markdown

import (
	"regexp"
	"strings"
	"sync"
)

// delimiterPattern is the second line of a table.
var delimiterPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$`) })

// endTable returns the lines of the table that was collected. A table that is wider than the
// terminal is shown as its source: its cells would not fit.
func (r *Renderer) endTable() []string {
	source := r.table
	r.table = nil
	if len(source) < 2 || !delimiterPattern().MatchString(source[1]) {
		return r.asSource(source)
	}
	right := alignments(source[1])
	var rows [][][]cell
	var widths []int
	for i, line := range source {
		if i == 1 {
			continue
		}
		row := r.row(line, i == 0)
		for column, c := range row {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], columns(c))
		}
		rows = append(rows, row)
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if total > r.Width {
		return r.asSource(source)
	}
	var lines []string
	for i, row := range rows {
		lines = append(lines, r.aligned(row, widths, right))
		if i == 0 {
			lines = append(lines, r.print(cellsOf(span{strings.Repeat("─", total), dim})))
		}
	}
	return lines
}

func (r *Renderer) asSource(source []string) []string {
	var lines []string
	for _, line := range source {
		lines = append(lines, r.block(line)...)
	}
	return lines
}

// row returns the cells of a line of a table.
func (r *Renderer) row(line string, head bool) [][]cell {
	var s style
	if head {
		s = bold
	}
	var row [][]cell
	for _, text := range fields(line) {
		spans := []span{{text: text}}
		if r.Color {
			spans = inline(text, s)
		}
		row = append(row, cellsOf(spans...))
	}
	return row
}

// fields splits a line of a table at bars that no backslash precedes.
func fields(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if !strings.HasSuffix(line, `\|`) {
		line = strings.TrimSuffix(line, "|")
	}
	const escaped = "\uE000" // of the private use area
	all := strings.Split(strings.ReplaceAll(line, `\|`, escaped), "|")
	for i := range all {
		all[i] = strings.ReplaceAll(strings.TrimSpace(all[i]), escaped, "|")
	}
	return all
}

// alignments reports which columns are aligned to the right.
func alignments(line string) []bool {
	var right []bool
	for _, f := range fields(line) {
		right = append(right, strings.HasSuffix(f, ":") && !strings.HasPrefix(f, ":"))
	}
	return right
}

// aligned returns a line of a table.
func (r *Renderer) aligned(row [][]cell, widths []int, right []bool) string {
	var line []cell
	for i, w := range widths {
		var c []cell
		if i < len(row) {
			c = row[i]
		}
		space := cellsOf(span{text: strings.Repeat(" ", w-columns(c))})
		if i > 0 {
			line = append(line, cellsOf(span{text: "  "})...)
		}
		if i < len(right) && right[i] {
			line = append(append(line, space...), c...)
		} else {
			line = append(append(line, c...), space...)
		}
	}
	return r.print(line)
}

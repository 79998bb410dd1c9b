package format

import (
	"context"
	"strings"
	"unicode/utf8"
)

// maxNesting is the maximum depth of lists and quotations in Markdown. Deeper ones are
// written at this depth, because the indentation of each line multiplies the text.
const maxNesting = 12

// writer writes blocks of Markdown: paragraphs, headings, list items, tables and code.
// After an error, which Err returns, it ignores what is written.
type writer struct {
	ctx    context.Context
	limits Limits
	text   strings.Builder
	chars  int // characters in text
	stack  []container
	deeper int // containers beyond maxNesting
	pages  []Page
	err    error
}

// container is a list item or a quotation around blocks.
type container struct {
	first string // the prefix of its first line; empty after it
	rest  string // the prefix of its other lines
	gap   bool   // whether a blank line precedes it
}

func (j *job) writer(ctx context.Context) *writer { return &writer{ctx: ctx, limits: j.limits} }

// stopped reports whether there was an error, such as a canceled context. Loops call it.
func (w *writer) stopped() bool {
	if w.err == nil && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err != nil
}

// result returns what was written.
func (w *writer) result() (*Result, error) {
	if w.stopped() {
		return nil, w.err
	}
	return &Result{Text: strings.TrimRight(w.text.String(), "\n"), Pages: w.pages}, nil
}

// push begins a list item or a quotation.
func (w *writer) push(c container) {
	if len(w.stack) < maxNesting {
		w.stack = append(w.stack, c)
		return
	}
	w.deeper++
	if c.first != c.rest { // the item becomes one of the innermost list
		last := &w.stack[len(w.stack)-1]
		last.first, last.gap = c.first, c.gap
	}
}

// pop ends the innermost list item or quotation.
func (w *writer) pop() {
	if w.deeper > 0 {
		w.deeper--
		return
	}
	w.stack = w.stack[:len(w.stack)-1]
}

// page begins a page.
func (w *writer) page(label string) {
	if len(w.pages) >= w.limits.Pages {
		w.err = tooManyPages(w.limits)
		return
	}
	w.separate()
	w.pages = append(w.pages, Page{Offset: w.chars, Label: label})
}

// separate begins a block: after a blank line, or on the next line if the block is the
// first one of an item of a tight list.
func (w *writer) separate() {
	if w.chars == 0 || strings.HasSuffix(w.text.String(), "\n\n") {
		return
	}
	prefix := ""
	for _, c := range w.stack {
		if c.first != "" {
			if !c.gap {
				return
			}
			break
		}
		prefix += c.rest
	}
	w.put(strings.TrimRight(prefix, " ") + "\n")
}

// line writes a line with the prefixes of the containers.
func (w *writer) line(s string) {
	var prefix strings.Builder
	for i := range w.stack {
		c := &w.stack[i]
		if c.first != "" {
			prefix.WriteString(c.first)
			c.first = ""
		} else {
			prefix.WriteString(c.rest)
		}
	}
	w.put(strings.TrimRight(prefix.String()+s, " ") + "\n")
}

// put appends text within the limit.
func (w *writer) put(s string) {
	if w.stopped() {
		return
	}
	if w.text.Len()+len(s) > w.limits.Output {
		w.err = outputTooLarge(w.limits)
		return
	}
	w.text.WriteString(s)
	w.chars += utf8.RuneCountInString(s)
}

// paragraph writes a paragraph, unless it is empty.
func (w *writer) paragraph(in *inline) {
	if in.empty() {
		return
	}
	w.separate()
	for line := range strings.SplitSeq(in.markdown(), "\n") {
		w.line(escapeStart(strings.TrimSpace(line)))
	}
}

// plainParagraph writes a paragraph without emphasis.
func (w *writer) plainParagraph(text string) {
	in := new(inline)
	in.add(text, 0, "")
	w.paragraph(in)
}

// heading writes a heading of level 1 to 6. Headings have no emphasis: it would be
// part of the heading path of chunks.
func (w *writer) heading(level int, in *inline) {
	text := in.plain()
	if text == "" {
		return
	}
	w.separate()
	w.line(strings.Repeat("#", min(max(level, 1), 6)) + " " + text)
}

// code writes a code block.
func (w *writer) code(language, text string) {
	text = strings.Trim(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	w.separate()
	w.line(fence + language)
	for line := range strings.SplitSeq(text, "\n") {
		w.line(line)
	}
	w.line(fence)
}

// rule writes a horizontal rule.
func (w *writer) rule() {
	w.separate()
	w.line("---")
}

// table writes rows of cells; the first row is the header. Rows may be of different
// lengths.
func (w *writer) table(rows [][]string) {
	rows = withoutEmpty(rows)
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return
	}
	w.separate()
	for i, row := range rows {
		w.tableRow(row, columns)
		if i == 0 {
			w.line("|" + strings.Repeat(" --- |", columns))
		}
		if w.stopped() {
			return
		}
	}
}

// tableRow writes one row of a table. Cells that a short row lacks are empty.
func (w *writer) tableRow(row []string, columns int) {
	var b strings.Builder
	b.WriteByte('|')
	for i := range columns {
		cell := ""
		if i < len(row) {
			cell = strings.ReplaceAll(collapseSpace(row[i]), "|", `\|`)
		}
		b.WriteString(" " + cell + " |")
		if b.Len() > w.limits.Output {
			break
		}
	}
	w.line(b.String())
}

// withoutEmpty returns the rows that have text, without the empty columns at their ends.
func withoutEmpty(rows [][]string) [][]string {
	kept := make([][]string, 0, len(rows))
	for _, row := range rows {
		for len(row) > 0 && strings.TrimSpace(row[len(row)-1]) == "" {
			row = row[:len(row)-1]
		}
		if len(row) > 0 {
			kept = append(kept, row)
		}
	}
	return kept
}

// listItem writes an item of a list at a level from 0 on; gap puts a blank line before it.
func (w *writer) listItem(level int, in *inline, gap bool) {
	indent := strings.Repeat("  ", level)
	w.push(container{first: indent + "- ", rest: indent + "  ", gap: gap})
	w.paragraph(in)
	w.pop()
}

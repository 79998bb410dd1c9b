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

// style is the emphasis of a run.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	code
)

// run is a part of a paragraph with one style.
type run struct {
	text  string
	style style
	link  string // the target; empty if the run is not part of a link
}

// inline is the text of a paragraph, a heading or a table cell. White space is
// collapsed when it is written; a line feed in a run with style lineBreak is kept.
type inline struct {
	runs []run
}

// lineBreak is a run of its text that breaks the line.
const lineBreak = "\v"

func (in *inline) add(text string, s style, link string) {
	if text == "" {
		return
	}
	if n := len(in.runs); n > 0 && in.runs[n-1].style == s && in.runs[n-1].link == link {
		in.runs[n-1].text += text
		return
	}
	in.runs = append(in.runs, run{text, s, link})
}

// empty reports whether there is no text but white space.
func (in *inline) empty() bool {
	for _, r := range in.runs {
		if strings.TrimSpace(r.text) != "" {
			return false
		}
	}
	return true
}

// markdown returns the text with its emphasis and links.
func (in *inline) markdown() string {
	runs := normalize(in.runs)
	var b strings.Builder
	for i := 0; i < len(runs); {
		end := i + 1
		for end < len(runs) && runs[end].link == runs[i].link && runs[i].link != "" {
			end++
		}
		if runs[i].link == "" {
			writeRun(&b, runs[i])
		} else {
			writeLink(&b, runs[i:end])
		}
		i = end
	}
	return strings.TrimSpace(b.String())
}

// plain returns the text without emphasis and links.
func (in *inline) plain() string {
	var b strings.Builder
	for _, r := range in.runs {
		b.WriteString(r.text)
	}
	return collapseSpace(b.String())
}

// normalize collapses white space across the runs, drops it next to line breaks, moves
// it out of emphasis, and merges runs of the same style.
func normalize(runs []run) []run {
	var out inline
	space := true // white space at the beginning is dropped
	for _, r := range runs {
		var b strings.Builder
		for _, c := range r.text {
			switch {
			case c == '\v':
				b.WriteRune(c)
				space = true
			case isSpace(c):
				if !space {
					b.WriteByte(' ')
				}
				space = true
			default:
				b.WriteRune(c)
				space = false
			}
		}
		out.addTrimmed(b.String(), r)
	}
	return out.runs
}

// addTrimmed adds the text of a run, with the white space at its ends as runs without
// emphasis.
func (in *inline) addTrimmed(text string, r run) {
	core := strings.Trim(text, " \v")
	if core == "" {
		in.add(text, 0, r.link)
		return
	}
	start := strings.Index(text, core)
	in.add(text[:start], 0, r.link)
	in.add(core, r.style, r.link)
	in.add(text[start+len(core):], 0, r.link)
}

func isSpace(c rune) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\u00a0' || c == '\u2028' || c == '\u2029'
}

// writeRun writes the text of a run in its emphasis.
func writeRun(b *strings.Builder, r run) {
	text := strings.ReplaceAll(r.text, lineBreak, "\n")
	if r.style&code != 0 {
		fence := strings.Repeat("`", longestRun(text, '`')+1)
		if len(fence) > 1 {
			text = " " + text + " "
		}
		text = fence + text + fence
	}
	marks := ""
	if strings.TrimSpace(text) != "" {
		for _, m := range []struct {
			style style
			mark  string
		}{{bold, "**"}, {italic, "*"}, {struck, "~~"}} {
			if r.style&m.style != 0 {
				marks += m.mark
			}
		}
	}
	b.WriteString(marks)
	b.WriteString(text)
	for len(marks) > 0 {
		size := 1
		if strings.HasSuffix(marks, "**") || strings.HasSuffix(marks, "~~") {
			size = 2
		}
		if strings.HasSuffix(marks, "***") { // bold, then italic
			size = 1
		}
		b.WriteString(marks[len(marks)-size:])
		marks = marks[:len(marks)-size]
	}
}

// writeLink writes runs with a common target.
func writeLink(b *strings.Builder, runs []run) {
	var text strings.Builder
	for _, r := range runs {
		writeRun(&text, r)
	}
	whole := strings.ReplaceAll(text.String(), "\n", " ")
	label := strings.TrimSpace(whole)
	if label == "" {
		b.WriteString(whole)
		return
	}
	if whole[0] == ' ' {
		b.WriteByte(' ')
	}
	if whole[len(whole)-1] == ' ' {
		defer b.WriteByte(' ')
	}
	target := strings.TrimSpace(runs[0].link)
	if label == target {
		b.WriteString(target)
		return
	}
	if strings.ContainsAny(target, " ()<>\n\t") {
		target = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "", "\t", "").Replace(target)
	}
	b.WriteString("[" + label + "](" + target + ")")
}

// longestRun returns the length of the longest sequence of c in s.
func longestRun(s string, c byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if n++; s[i] != c {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// escapeStart escapes the character at the beginning of a line that would make it a
// heading, a list item, a quotation, a rule or a fence.
func escapeStart(line string) string {
	first, size := utf8.DecodeRuneInString(line)
	switch first {
	case '#':
		if rest := strings.TrimLeft(line, "#"); rest == "" || rest[0] == ' ' {
			return `\` + line
		}
	case '>':
		return `\` + line
	case '-', '+', '*', '=', '_':
		if rest := line[size:]; rest == "" || rest[0] == ' ' || strings.Trim(line, string(first)+" ") == "" {
			return `\` + line
		}
	case '`', '~':
		if strings.HasPrefix(line, strings.Repeat(string(first), 3)) {
			return `\` + line
		}
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && digits < 10 && len(line) > digits+1 && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' ' {
		return line[:digits] + `\` + line[digits:]
	}
	return line
}

package diag

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec/source"
)

// TextOptions change the text form.
type TextOptions struct {
	Color bool // colours the head, the caret and the gutter by ANSI escapes
	Width int  // columns of the terminal; longer lines are cut around the caret; 0 stands for 120
}

// Text prints the list for people: one block a finding, with the excerpt, a
// caret under the word, related places and the includes that led there.
func Text(w io.Writer, list List, opts TextOptions) error {
	out := bufio.NewWriter(w)
	p := printer{out: out, opts: opts}
	for i, d := range list {
		if i > 0 {
			p.line("")
		}
		p.block(d)
	}
	return out.Flush()
}

// printer draws blocks.
type printer struct {
	out    *bufio.Writer
	opts   TextOptions
	gutter int // columns of the line numbers of the block at hand

	last struct { // the last answer of lineOf
		file   *source.File
		number int
		line   shownLine
	}
}

// The colours, as ANSI escapes.
const (
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	blue   = "\x1b[34m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

func (p *printer) paint(color, s string) string {
	if !p.opts.Color || s == "" {
		return s
	}
	return color + s + reset
}

func (p *printer) line(s string) {
	p.out.WriteString(s)
	p.out.WriteByte('\n')
}

// label is one underlined place of an excerpt.
type label struct {
	span  source.Span
	text  string // what stands after the underline
	sign  string // what the underline is made of
	color string
}

// block draws one finding.
func (p *printer) block(d Diagnostic) {
	color := red
	if d.Severity == Warning {
		color = yellow
	}
	head := p.paint(color, fmt.Sprintf("%s[%s]", d.Severity, d.Code))
	switch place := d.Span.String(); {
	case place == "":
		head += ":"
	case !strings.HasPrefix(d.Message, place+" "): // a fault of a file as a whole begins with its name
		head += " " + escapeControl(place) + ":"
	}
	p.line(head + " " + p.paint(bold, escapeControl(d.Message)))

	marks := []label{{span: d.Span, text: d.Hint, sign: "^", color: color}}
	for _, r := range d.Related {
		marks = append(marks, label{span: r.Span, text: r.Message, sign: "-", color: cyan})
	}
	p.gutter = gutterOf(marks)
	if !displayable(d.Span) {
		p.note(escapeControl(d.Hint))
	}
	p.excerpts(marks)
	for _, at := range d.Span.Includes() {
		p.note("included from " + escapeControl(at.String()))
	}
	p.note("qtype explain " + d.Code)
}

// note draws a line that starts with an equals sign.
func (p *printer) note(s string) {
	if s != "" {
		p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " = ") + s)
	}
}

// displayable tells whether the text of a place is at hand.
func displayable(s source.Span) bool {
	return s.File != nil && s.Start.Line > 0 && len(s.File.Text) > 0
}

func gutterOf(marks []label) int {
	widest := 1
	for _, m := range marks {
		if displayable(m.span) {
			widest = max(widest, len(strconv.Itoa(m.span.Start.Line)))
		}
	}
	return widest
}

// excerpts draws the marked lines: the finding's own file first, others under
// their names.
func (p *printer) excerpts(marks []label) {
	home := marks[0].span.File
	var own, others []label
	for _, m := range marks {
		switch {
		case !displayable(m.span):
		case m.span.File == home:
			own = append(own, m)
		default:
			others = append(others, m)
		}
	}
	if len(own) > 0 {
		p.bar()
		p.lines(own)
		p.bar()
	}
	for _, m := range others {
		p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " > ") + escapeControl(m.span.String()))
		p.bar()
		p.lines([]label{m})
		p.bar()
	}
}

func (p *printer) bar() { p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " |")) }

// lines draws marked lines of one file in order, with a colon where some are left out.
func (p *printer) lines(marks []label) {
	slices.SortStableFunc(marks, func(a, b label) int {
		return cmp.Or(cmp.Compare(a.span.Start.Line, b.span.Start.Line), cmp.Compare(a.span.Start.Column, b.span.Start.Column))
	})
	last := 0
	for _, m := range marks {
		n := m.span.Start.Line
		if last > 0 && n > last+1 {
			p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " :"))
		}
		p.excerpt(m, n != last)
		last = n
	}
}

// lineOf is the line where a span begins. Many findings may stand in one line of
// a megabyte, so the last one is kept.
func (p *printer) lineOf(s source.Span) shownLine {
	if p.last.file != s.File || p.last.number != s.Start.Line {
		p.last.file, p.last.number = s.File, s.Start.Line
		p.last.line = lineOf(s.File, s.Start.Line)
	}
	return p.last.line
}

// excerpt draws one line, unless it was drawn for the mark before, and the underline.
func (p *printer) excerpt(m label, withLine bool) {
	number := fmt.Sprintf("%*d", p.gutter, m.span.Start.Line)
	width := p.opts.Width
	if width <= 0 {
		width = 120
	}
	shown, before, under := cut(p.lineOf(m.span), m.span, max(width-p.gutter-len(" | "), 20))
	if withLine {
		p.line(strings.TrimRight(p.paint(blue, number+" |")+" "+shown, " "))
	}
	text := strings.Repeat(m.sign, under)
	if m.text != "" {
		text += " " + escapeControl(m.text)
	}
	p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " |") + " " + strings.Repeat(" ", before) + p.paint(m.color, text))
}

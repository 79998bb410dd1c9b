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

// TextOptions are the options of Text.
type TextOptions struct {
	Color bool // color the heading, the caret and the gutter with ANSI escapes
	Width int  // columns of the terminal, 120 if 0; longer lines are cut around the caret

	Program string // the program with the command explain; qtype if empty
}

// Text prints the list for people: a block for each diagnostic with an excerpt, a
// caret under the text in question, related positions, and the chain of includes.
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

type printer struct {
	out    *bufio.Writer
	opts   TextOptions
	gutter int // columns of the line numbers of the current block

	last struct { // the last result of lineOf
		file   *source.File
		number int
		line   shownLine
	}
}

// ANSI escapes.
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

// label is an underlined range of an excerpt.
type label struct {
	span  source.Span
	text  string // text after the underline
	sign  string // character of the underline
	color string
}

// block prints one diagnostic.
func (p *printer) block(d Diagnostic) {
	color := red
	if d.Severity == Warning {
		color = yellow
	}
	head := p.paint(color, fmt.Sprintf("%s[%s]", d.Severity, d.Code))
	switch position := d.Span.String(); {
	case position == "":
		head += ":"
	case !strings.HasPrefix(d.Message, position+" "): // a message about a whole file begins with its name
		head += " " + escapeControl(position) + ":"
	}
	p.line(head + " " + p.paint(bold, escapeControl(d.Message)))

	labels := []label{{span: d.Span, text: p.hint(d), sign: "^", color: color}}
	for _, r := range d.Related {
		labels = append(labels, label{span: r.Span, text: r.Message, sign: "-", color: cyan})
	}
	p.gutter = gutterOf(labels)
	if !displayable(d.Span) {
		p.note(escapeControl(p.hint(d)))
	}
	p.excerpts(labels)
	for _, at := range d.Span.Includes() {
		p.note("included from " + escapeControl(at.String()))
	}
	p.note(p.explain() + d.Code)
}

// note prints a line that starts with an equals sign.
func (p *printer) note(s string) {
	if s != "" {
		p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " = ") + s)
	}
}

// displayable reports whether the text of a span is available.
func displayable(s source.Span) bool {
	return s.File != nil && s.Start.Line > 0 && len(s.File.Text) > 0
}

func gutterOf(labels []label) int {
	widest := 1
	for _, m := range labels {
		if displayable(m.span) {
			widest = max(widest, len(strconv.Itoa(m.span.Start.Line)))
		}
	}
	return widest
}

// excerpts prints the labeled lines: first those in the file of the diagnostic, then
// the others under their file names.
func (p *printer) excerpts(labels []label) {
	home := labels[0].span.File
	var own, others []label
	for _, m := range labels {
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

// lines prints labeled lines of one file in order, with a colon for omitted lines.
func (p *printer) lines(labels []label) {
	slices.SortStableFunc(labels, func(a, b label) int {
		return cmp.Or(cmp.Compare(a.span.Start.Line, b.span.Start.Line), cmp.Compare(a.span.Start.Column, b.span.Start.Column))
	})
	last := 0
	for _, m := range labels {
		n := m.span.Start.Line
		if last > 0 && n > last+1 {
			p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " :"))
		}
		p.excerpt(m, n != last)
		last = n
	}
}

// lineOf returns the line where a span begins. It caches the last one, as a line of
// a megabyte may have many diagnostics.
func (p *printer) lineOf(s source.Span) shownLine {
	if p.last.file != s.File || p.last.number != s.Start.Line {
		p.last.file, p.last.number = s.File, s.Start.Line
		p.last.line = lineOf(s.File, s.Start.Line)
	}
	return p.last.line
}

// excerpt prints the underline of a label, after its line unless that was printed
// for the previous label.
func (p *printer) excerpt(m label, withLine bool) {
	number := fmt.Sprintf("%*d", p.gutter, m.span.Start.Line)
	width := p.opts.Width
	if width <= 0 {
		width = 120
	}
	shown, before, under := excerptLine(p.lineOf(m.span), m.span, max(width-p.gutter-len(" | "), 20))
	if withLine {
		p.line(strings.TrimRight(p.paint(blue, number+" |")+" "+shown, " "))
	}
	text := strings.Repeat(m.sign, under)
	if m.text != "" {
		text += " " + escapeControl(m.text)
	}
	p.line(strings.Repeat(" ", p.gutter) + p.paint(blue, " |") + " " + strings.Repeat(" ", before) + p.paint(m.color, text))
}

// explain returns the command that explains what follows.
func (p *printer) explain() string { return cmp.Or(p.opts.Program, "qtype") + " explain " }

// hint returns the hint of a diagnostic, in which the command has the name of the program.
func (p *printer) hint(d Diagnostic) string {
	return strings.ReplaceAll(d.Hint, "qtype explain ", p.explain())
}

package diag

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/qtype-dev/qtype/internal/textfmt"
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

// summary returns the message with the hint, for formats without a caret.
func (d Diagnostic) summary() string {
	if d.Hint == "" {
		return escapeControl(d.Message)
	}
	return escapeControl(d.Message + "; " + d.Hint)
}

// file returns the path of a span's file, "" if there is none.
func file(s source.Span) string {
	if s.File == nil {
		return ""
	}
	return escapeControl(s.File.Path)
}

// entry is a diagnostic in JSON. Lines and columns are omitted if there are none.
type entry struct {
	Code       string    `json:"code"`
	Severity   Severity  `json:"severity"`
	Message    string    `json:"message"`
	File       string    `json:"file"`
	Line       int       `json:"line,omitempty"`
	Column     int       `json:"column,omitempty"`
	EndLine    int       `json:"end_line,omitempty"`
	EndColumn  int       `json:"end_column,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	Fixes      []fixJSON `json:"fixes,omitempty"`
}

type fixJSON struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Text      string `json:"text"`
}

func fixesOf(d Diagnostic) []fixJSON {
	var all []fixJSON
	for _, f := range d.Fixes {
		s := f.Span
		all = append(all, fixJSON{file(s), s.Start.Line, s.Start.Column, s.End.Line, s.End.Column, f.NewText})
	}
	return all
}

// JSON prints the list as an array of objects, [] if it is empty. Lines and columns
// count from 1, columns in characters; a diagnostic without a position has none.
// The fixes of a diagnostic belong together.
func JSON(w io.Writer, list List) error {
	entries := make([]entry, len(list))
	for i, d := range list {
		entries[i] = entry{
			Code: d.Code, Severity: d.Severity, Message: d.summary(), File: file(d.Span),
			Line: d.Span.Start.Line, Column: d.Span.Start.Column,
			EndLine: d.Span.End.Line, EndColumn: d.Span.End.Column, Suggestion: d.Suggestion,
			Fixes: fixesOf(d),
		}
	}
	return encode(w, entries)
}

// encode writes indented JSON. It escapes control characters for the terminal,
// which changes no value.
func encode(w io.Writer, value any) error {
	var text bytes.Buffer
	if err := textfmt.WriteJSON(&text, value); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range text.String() {
		switch {
		case r < 0x80 || !unprintable(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// GitHub prints the list as workflow commands that annotate a pull request.
func GitHub(w io.Writer, list List) error {
	for _, d := range list {
		properties := []string{}
		add := func(name string, value any) {
			properties = append(properties, name+"="+escapeProperty(fmt.Sprint(value)))
		}
		if path := file(d.Span); path != "" {
			add("file", path)
		}
		if d.Span.Start.Line > 0 {
			add("line", d.Span.Start.Line)
			add("col", d.Span.Start.Column)
			add("endLine", d.Span.End.Line)
			add("endColumn", d.Span.End.Column)
		}
		add("title", d.Code)
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", d.Severity, strings.Join(properties, ","), escapeData(d.summary())); err != nil {
			return err
		}
	}
	return nil
}

// escapeData escapes the message of a workflow command.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// escapeProperty escapes a property of a workflow command.
func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// ListRules returns a line for each rule: its code, severity and title.
func ListRules(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%s  %-7s  %s\n", r.Code, r.Severity, r.Title)
	}
	return b.String()
}

// FindRule returns the rule with a code, which may also be written as 202, qt202 and QT-202.
func FindRule(rules []Rule, code string) (Rule, error) {
	code = fullCode(code)
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })
	if i >= 0 {
		return rules[i], nil
	}
	var codes []string
	for _, r := range rules {
		codes = append(codes, r.Code)
	}
	near := DidYouMean(code, codes)
	if near == "" {
		near = `; codes are QT and three digits, and "qtype explain" lists them`
	}
	return Rule{}, fmt.Errorf("no diagnostic has the code %q%s", code, near)
}

// IsCode reports whether a word is meant as a code: 202, QT202 or qtx.
func IsCode(word string) bool { return strings.HasPrefix(fullCode(word), "QT") }

// fullCode returns a code as it is declared.
func fullCode(code string) string {
	upper := strings.ToUpper(strings.TrimSpace(code))
	number := strings.TrimLeft(strings.TrimPrefix(upper, "QT"), "- ")
	if number != "" && strings.Trim(number, "0123456789") == "" {
		return fmt.Sprintf("QT%03s", number)
	}
	return upper
}

// Explain returns the description of a rule with its examples.
func (r Rule) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n\n%s\n", r.Code, r.Severity, r.Title, strings.TrimSpace(r.Doc))
	for _, example := range []struct{ name, text string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		if text := strings.Trim(example.text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n    %s\n", example.name, strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	return b.String()
}

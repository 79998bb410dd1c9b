// Package markdown shows Markdown in a terminal while it is being written: each line is
// complete as soon as its source is, and what is not complete yet can be shown as it is.
//
// The text is of a model and not trusted: the caller has removed the characters that a
// terminal acts upon, and the package writes no sequences but those of styles.
package markdown

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// maxPending bounds what Pending shows of a line, in bytes: it is called for each delta.
const maxPending = 4096

// Renderer renders a text that arrives in pieces.
type Renderer struct {
	Width int  // columns of the terminal
	Color bool // styles may be used; otherwise marks such as ** are shown

	line  string      // the source of the line that is not complete
	table []string    // the source of the lines of a table that is not complete
	fence string      // the mark that ends the code block; empty outside of one
	code  highlighter // of that block
}

// Write adds text and returns the lines that are complete.
func (r *Renderer) Write(text string) []string {
	var done []string
	for {
		line, rest, complete := strings.Cut(text, "\n")
		r.line += line
		if !complete {
			return done
		}
		done = append(done, r.complete(r.line)...)
		r.line, text = "", rest
	}
}

// Pending returns what is not complete, as it would be shown now.
func (r *Renderer) Pending() []string {
	if r.line == "" && len(r.table) == 0 {
		return nil
	}
	copied := *r
	if cut := len(r.line) - maxPending; cut > 0 {
		copied.line = r.line[textfmt.Boundary(r.line, cut+utf8.UTFMax-1):]
	}
	return copied.Flush()
}

// Flush ends the text and returns the rest of its lines.
func (r *Renderer) Flush() []string {
	var done []string
	if r.line != "" {
		done = r.complete(r.line)
	}
	done = append(done, r.endTable()...)
	r.line, r.fence = "", ""
	return done
}

// complete returns a line that is complete, with the table that it may end. A line of a
// table is kept until the table ends.
func (r *Renderer) complete(line string) []string {
	if r.fence == "" && strings.HasPrefix(strings.TrimSpace(line), "|") {
		r.table = append(r.table, line)
		return nil
	}
	return append(r.endTable(), r.block(line)...)
}

// The patterns of lines.
var (
	fencePattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^\\s*(```+|~~~+)\\s*([^`]*)$") })
	headingPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*$`) })
	rulePattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([-*_])(\s*[-*_]){2,}\s*$`) })
	itemPattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$`) })
	quotePattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*((?:>\s?)+)(.*)$`) })
)

// ruleWidth is the most columns of a horizontal rule.
const ruleWidth = 40

// block returns a line outside of tables.
func (r *Renderer) block(line string) []string {
	if m := fencePattern().FindStringSubmatch(line); m != nil || r.fence != "" {
		return r.codeLine(line, m)
	}
	if strings.TrimSpace(line) == "" {
		return []string{""}
	}
	if !r.Color {
		m := itemPattern().FindStringSubmatch(line)
		if m == nil {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		mark := r.indent(m[1]) + m[2] + " "
		return r.wrap([]span{{text: m[3]}}, span{text: mark}, span{text: strings.Repeat(" ", width(mark))})
	}
	return r.styled(line)
}

// codeLine returns a line of a code block, or one of its two marks.
func (r *Renderer) codeLine(line string, m []string) []string {
	switch {
	case r.fence == "": // m is not nil
		r.fence = m[1]
		r.code = highlighter{syntax: syntaxOf(m[2])}
		if !r.Color {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		if m[2] == "" {
			return nil
		}
		return r.wrap([]span{{m[2], dim}}, span{text: "  "}, span{text: "  "})
	case m != nil && strings.HasPrefix(m[1], r.fence) && m[2] == "":
		r.fence = ""
		if !r.Color {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		return nil
	}
	line = strings.ReplaceAll(line, "\t", "    ")
	if !r.Color {
		return r.wrap([]span{{text: line}}, span{}, span{})
	}
	if r.code.syntax == nil {
		return r.wrapExact([]span{{line, code}}, span{text: "  "})
	}
	return r.wrapExact(r.code.line(line), span{text: "  "})
}

// styled returns a line with its marks replaced by styles.
func (r *Renderer) styled(line string) []string {
	if m := headingPattern().FindStringSubmatch(line); m != nil {
		s := bold
		if len(m[1]) == 1 {
			s |= underline
		}
		return r.wrap(inline(m[2], s), span{}, span{})
	}
	if rulePattern().MatchString(line) {
		return r.wrap([]span{{strings.Repeat("─", min(r.Width, ruleWidth)), dim}}, span{}, span{})
	}
	if m := itemPattern().FindStringSubmatch(line); m != nil {
		mark := m[2]
		if len(mark) == 1 {
			mark = "•"
		}
		text := m[3]
		for box, shown := range map[string]string{"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"} {
			if rest, ok := strings.CutPrefix(text, box); ok {
				mark, text = shown, rest
			}
		}
		indent := r.indent(m[1])
		return r.wrap(inline(text, 0), span{indent + mark + " ", accent}, span{text: indent + strings.Repeat(" ", width(mark)+1)})
	}
	if m := quotePattern().FindStringSubmatch(line); m != nil {
		bars := span{strings.Repeat("│ ", min(strings.Count(m[1], ">"), r.Width/4)), dim}
		return r.wrap(inline(m[2], italic), bars, bars)
	}
	return r.wrap(inline(line, 0), span{}, span{})
}

// indent returns the space before the mark of an item, at most half a line.
func (r *Renderer) indent(space string) string {
	return strings.Repeat(" ", min(width(strings.ReplaceAll(space, "\t", "    ")), r.Width/2))
}

// style is how a text looks.
type style uint16

const (
	bold style = 1 << iota
	dim
	italic
	underline
	strike
	code
	accent
	quoted // a text in a program
	number // in a program
)

// sequences are the parameters of the styles, in the order of their bits.
var sequences = []string{"1", "2", "3", "4", "9", "36", "35", "32", "33"}

// open returns the sequence that begins a style.
func (s style) open() string {
	var all []string
	for i, parameter := range sequences {
		if s&(1<<i) != 0 {
			all = append(all, parameter)
		}
	}
	return "\x1b[" + strings.Join(all, ";") + "m"
}

// span is a text of one style.
type span struct {
	text  string
	style style
}

// escapable are the characters that a backslash makes ordinary ones.
const escapable = "\\`*_{}[]()#+-.!~|<>"

// inline returns the spans of a text, whose marks are replaced by styles.
func inline(text string, s style) []span {
	var spans []span
	plain := ""
	end := func() {
		if plain != "" {
			spans = append(spans, span{plain, s})
		}
		plain = ""
	}
	for i := 0; i < len(text); {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(escapable, text[i+1]) >= 0 {
			plain += text[i+1 : i+2]
			i += 2
			continue
		}
		if found, size := marked(text, i, s); size > 0 {
			end()
			spans = append(spans, found...)
			i += size
			continue
		}
		size := 1
		for i+size < len(text) && !utf8.RuneStart(text[i+size]) {
			size++
		}
		plain += text[i : i+size]
		i += size
	}
	end()
	return spans
}

// delimiters are the marks before and after a text of another style. Longer ones come first.
var delimiters = []struct {
	mark  string
	style style
}{{"***", bold | italic}, {"**", bold}, {"__", bold}, {"~~", strike}, {"*", italic}, {"_", italic}}

// marked returns the spans of what begins with a mark at a position, and its length; 0 if
// there is no mark, or nothing that ends it.
func marked(text string, at int, s style) ([]span, int) {
	rest := text[at:]
	switch rest[0] {
	case '`':
		return codeSpan(rest, s)
	case '[':
		return link(rest, s)
	case '*', '_', '~':
	default:
		return nil, 0
	}
	for _, d := range delimiters {
		inner, ok := strings.CutPrefix(rest, d.mark)
		if !ok || inner == "" || unicode.IsSpace(rune(inner[0])) || d.mark[0] == '_' && isWordBefore(text, at) {
			continue
		}
		if end := closing(inner, d.mark); end > 0 {
			return inline(inner[:end], s|d.style), end + 2*len(d.mark)
		}
	}
	return nil, 0
}

// closing returns where a mark ends a text; -1 if it does not.
func closing(text, mark string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return -1
		}
		i += from
		after := text[i+len(mark):]
		switch {
		case i == 0 || text[i-1] == ' ' || text[i-1] == '\\':
		case len(mark) == 1 && strings.HasPrefix(after, mark): // a part of a longer mark
			from = i + 2
			continue
		case mark[0] == '_' && startsWord(after):
		default:
			return i
		}
		from = i + len(mark)
	}
}

func isWordBefore(text string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:at])
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

func startsWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// codeSpan returns the text between two runs of backquotes.
func codeSpan(text string, s style) ([]span, int) {
	mark := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	inner, after, ok := strings.Cut(text[len(mark):], mark)
	if !ok || inner == "" || strings.HasPrefix(after, "`") {
		return nil, 0
	}
	shown := inner
	if len(inner) > 2 && inner[0] == ' ' && inner[len(inner)-1] == ' ' {
		shown = inner[1 : len(inner)-1]
	}
	return []span{{shown, s | code}}, len(inner) + 2*len(mark)
}

// link returns the text of a link and its address, which is always shown: the text may claim
// another one.
func link(text string, s style) ([]span, int) {
	label, rest, ok := strings.Cut(text[1:], "](")
	if !ok || strings.ContainsAny(label, "[]") {
		return nil, 0
	}
	address, _, ok := strings.Cut(rest, ")")
	if !ok || address == "" || strings.ContainsAny(address, " (") {
		return nil, 0
	}
	size := len("[") + len(label) + len("](") + len(address) + len(")")
	if label == address {
		return []span{{address, s | underline}}, size
	}
	return append(inline(label, s|underline), span{" (" + address + ")", s | dim}), size
}

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

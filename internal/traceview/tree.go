package traceview

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	maxTreeText  = 2000 // bytes of one text
	maxTreeLines = 30   // lines of one text
	labelWidth   = 9
)

// tree writes rows for people.
type tree struct {
	out   io.Writer
	unit  string
	color bool
}

func newTree(o Options) output {
	return &tree{out: o.Streams.Err, unit: o.Unit, color: o.Streams.ErrTerminal && o.Streams.Color}
}

// row writes a row at once, so that other output does not come between its lines.
func (t *tree) row(r *telemetry.RowSpans) error {
	roots := entries(r.Spans)
	title, whole := heading(t.unit, r, roots)
	if whole { // its rows were written, and the summary follows
		return nil
	}
	sum := totalsOf(r.Spans, roots)
	var b strings.Builder
	b.WriteString(t.styled(bold, terminal.Clean(title)))
	notes := sum.notes()
	if sum.failed {
		notes = append(notes, "failed")
	}
	t.notes(&b, notes)
	b.WriteByte('\n')
	t.children(&b, &entry{children: roots, span: &telemetry.Span{}}, "")
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (t *tree) close() error { return nil }

// children writes the entries within one whose line begins with indent.
func (t *tree) children(b *strings.Builder, outer *entry, indent string) {
	for i, e := range outer.children {
		branch, below := "├─ ", "│  "
		if i == len(outer.children)-1 {
			branch, below = "└─ ", "   "
		}
		title := terminal.Clean(e.title)
		if e.failed() {
			title = t.styled(red, "✗ "+title)
		}
		b.WriteString(indent + branch + title)
		t.notes(b, e.notes)
		b.WriteByte('\n')
		text := indent + below
		if len(e.children) > 0 {
			text += "│ "
		} else {
			text += "  "
		}
		t.blocks(b, e, text)
		if e.failed() && e.span.Error != outer.span.Error {
			t.block(b, block{label: "error", text: e.span.Error}, text)
		}
		t.children(b, e, indent+below)
	}
}

func (t *tree) notes(b *strings.Builder, notes []string) {
	if len(notes) > 0 {
		b.WriteString(t.styled(dim, " · "+terminal.Clean(strings.Join(notes, " · "))))
	}
}

// blocks writes the texts of an entry.
func (t *tree) blocks(b *strings.Builder, e *entry, indent string) {
	for _, part := range e.blocks {
		if !part.detail {
			t.block(b, part, indent)
		}
	}
}

// block writes a text next to its label.
func (t *tree) block(b *strings.Builder, part block, indent string) {
	label := terminal.Clean(part.label)
	label += strings.Repeat(" ", max(0, labelWidth-utf8.RuneCountInString(label)))
	for i, l := range shortened(part.text) {
		if i > 0 {
			label = strings.Repeat(" ", utf8.RuneCountInString(label))
		}
		b.WriteString(strings.TrimRight(indent+t.styled(dim, label)+"  "+l, " ") + "\n")
	}
}

// shortened returns the first lines of a text, and a line with the length of the rest.
func shortened(text string) []string {
	text = strings.TrimRight(terminal.Printable(text), "\n")
	whole := text
	if len(text) > maxTreeText {
		text = strings.ToValidUTF8(text[:maxTreeText], "")
	}
	all := strings.Split(text, "\n")
	if len(all) > maxTreeLines {
		all = all[:maxTreeLines]
	}
	shown := len(strings.Join(all, "\n"))
	if shown < len(whole) {
		all = append(all, fmt.Sprintf("… %s more; --trace FILE.html has all", textfmt.Count(utf8.RuneCountInString(whole[shown:]), "character")))
	}
	return all
}

// The styles of terminals.
const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

func (t *tree) styled(style, text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

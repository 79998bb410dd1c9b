package batch

import (
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// table writes results as a table.
type table struct {
	*terminal.Table
	columns outputColumns
	show    *display
}

// newTable returns a table without a column for errors: the error of a failed row is
// written across the outputs.
func newTable(streams *terminal.Streams, columns outputColumns) *table {
	var all []terminal.Column
	if columns.row {
		all = append(all, terminal.Column{Name: "row", Right: true, Min: 4})
	}
	if columns.user {
		all = append(all, terminal.Column{Name: "user"})
	}
	if columns.session {
		all = append(all, terminal.Column{Name: "session"})
	}
	for _, v := range columns.outputs {
		all = append(all, terminal.Column{Name: v.ID, Right: v.Type.Is("int") || v.Type.Is("float")})
	}
	t := &table{columns: columns}
	t.Table = terminal.NewTable(streams.Width, func() io.Writer { return t.show.above(streams.Out) }, all...)
	return t
}

func (t *table) setDisplay(d *display) { t.show = d }

func (t *table) write(res *runtime.Result) error {
	var cells []string
	if t.columns.row {
		cells = append(cells, "")
		if n := number(res); n != nil {
			cells[0] = fmt.Sprint(n)
		}
	}
	user, session := t.columns.sessionOf(res)
	if t.columns.user {
		cells = append(cells, terminal.Clean(user))
	}
	if t.columns.session {
		cells = append(cells, terminal.Clean(session))
	}
	if res.Err != nil {
		cells = append(cells, "failed: "+terminal.Clean(res.Err.Error()))
	} else {
		for _, x := range res.Outputs() {
			cells = append(cells, terminal.Clean(value.Text(x)))
		}
	}
	return t.Row(cells)
}

func (t *table) close() error { return t.Flush() }

// abort writes the rows that are buffered: they are complete.
func (t *table) abort() { _ = t.Flush() }

// textView writes results as texts: the output of a flow that has one, otherwise each
// under its name.
type textView struct {
	out    io.Writer
	show   *display
	single bool // the flow has one output
	safe   bool // characters that a terminal acts upon are replaced
}

func (c *textView) setDisplay(d *display) { c.show = d }

// write writes a result's outputs. The summary has the reasons of failed rows.
func (c *textView) write(res *runtime.Result) error {
	var b strings.Builder
	if res.Err == nil {
		for v, x := range res.Outputs() {
			c.writeOutput(&b, v, x)
		}
	}
	_, err := io.WriteString(c.show.above(c.out), b.String())
	return err
}

// writeOutput writes one output.
func (c *textView) writeOutput(b *strings.Builder, v *spec.Variable, x any) {
	if !c.single {
		writeDetail(b, v, x)
		return
	}
	text := value.Text(x)
	if c.safe {
		text = terminal.Printable(text)
	}
	b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
}

// writeDetail writes one output. A text of several lines begins under its name.
func writeDetail(b *strings.Builder, v *spec.Variable, x any) {
	lines := strings.Split(strings.TrimRight(value.Text(x), "\r\n"), "\n")
	if len(lines) == 1 {
		fmt.Fprintf(b, "%s: %s\n", v.ID, terminal.Clean(lines[0]))
		return
	}
	fmt.Fprintf(b, "%s:\n", v.ID)
	for _, l := range lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		fmt.Fprintf(b, "  %s%s\n", indent, terminal.Clean(l))
	}
}

func (c *textView) close() error { return nil }
func (c *textView) abort()       {}

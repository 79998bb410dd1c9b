package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// A table looks at its first rows before it chooses its columns' widths: at so
// many, or at those of so long a time.
const (
	sampleRows = 24
	heldLong   = time.Second
)

// minColumn is the fewest columns of the terminal that a table's column is cut to.
const minColumn = 6

// table draws results for people, one line a row.
type table struct {
	to     *streams
	shape  outputColumns
	show   *display
	heads  []string
	right  []bool // numbers stand on the right
	widths []int  // chosen once enough rows are there
	rows   [][]string
	first  time.Time // when the first row came
}

// newTable makes a table of the shape's columns; a failed row says so across
// the outputs, so there is no column for errors.
func newTable(s *streams, sh outputColumns) *table {
	t := &table{to: s, shape: sh}
	add := func(name string, right bool) {
		t.heads = append(t.heads, name)
		t.right = append(t.right, right)
	}
	if sh.row {
		add("row", true)
	}
	if sh.session {
		add("session", false)
	}
	for _, v := range sh.outputs {
		add(v.ID, v.Type.Is("int") || v.Type.Is("float"))
	}
	return t
}

// showOn tells the table which bars it draws over.
func (t *table) showOn(d *display) { t.show = d }

// row draws a result, or keeps it until the widths are chosen.
func (t *table) row(res *runtime.Result) error {
	var cells []string
	if t.shape.row {
		cells = append(cells, "")
		if n := number(res); n != nil {
			cells[0] = fmt.Sprint(n)
		}
	}
	if t.shape.session {
		cells = append(cells, clean(res.Session))
	}
	if res.Err != nil {
		cells = append(cells, "failed: "+clean(res.Err.Error()))
	} else {
		for _, x := range res.Outputs() {
			cells = append(cells, clean(value.Text(x)))
		}
	}
	if t.widths != nil {
		return t.draw(cells)
	}
	if len(t.rows) == 0 {
		t.first = time.Now()
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < sampleRows && time.Since(t.first) < heldLong {
		return nil
	}
	return t.begin()
}

// begin chooses the widths and draws what was held.
func (t *table) begin() error {
	t.choose()
	if err := t.draw(t.heads); err != nil {
		return err
	}
	for _, cells := range t.rows {
		if err := t.draw(cells); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

// choose gives each column what its cells need, and where that is more than the
// terminal has, takes from the widest ones.
func (t *table) choose() {
	t.widths = make([]int, len(t.heads))
	for i, h := range t.heads {
		t.widths[i] = runewidth.StringWidth(h)
	}
	for _, cells := range t.rows {
		if len(cells) != len(t.heads) {
			continue // a failed row
		}
		for i, c := range cells {
			t.widths[i] = max(t.widths[i], runewidth.StringWidth(c))
		}
	}
	if t.shape.row {
		t.widths[0] = max(t.widths[0], 4)
	}
	room := t.to.width - 1 - 2*(len(t.widths)-1)
	for sum(t.widths) > room {
		widest := 0
		for i, w := range t.widths {
			if w > t.widths[widest] {
				widest = i
			}
		}
		if t.widths[widest] <= minColumn {
			return // the terminal is too narrow: lines will wrap
		}
		t.widths[widest]--
	}
}

func sum(widths []int) int {
	n := 0
	for _, w := range widths {
		n += w
	}
	return n
}

// draw writes one line; the last cell of a failed row has the rest of the line.
func (t *table) draw(cells []string) error {
	var b strings.Builder
	for i, c := range cells {
		width := t.widths[i]
		if i == len(cells)-1 {
			width = sum(t.widths[i:]) + 2*(len(t.widths)-1-i)
		}
		if i > 0 {
			b.WriteString("  ")
		}
		if t.right[i] && (len(cells) == len(t.heads) || i < len(cells)-1) {
			b.WriteString(padLeft(c, width))
			continue
		}
		b.WriteString(pad(c, width))
	}
	_, err := io.WriteString(t.show.over(t.to.out), " "+strings.TrimRight(b.String(), " ")+"\n")
	return err
}

// close draws what a short run left undrawn.
func (t *table) close() error {
	if t.widths == nil && len(t.rows) > 0 {
		return t.begin()
	}
	return nil
}

// abort shows the rows that were held: they are done.
func (t *table) abort() { _ = t.close() }

// detailView draws the result of a single input: each output whole, under its name.
type detailView struct {
	to   *streams
	show *display
	some bool
}

// showOn tells the cards which bars they are drawn over.
func (c *detailView) showOn(d *display) { c.show = d }

// row draws a result's outputs; why a row failed is the summary's to tell.
func (c *detailView) row(res *runtime.Result) error {
	var b strings.Builder
	if c.some {
		b.WriteString("\n")
	}
	c.some = true
	if res.Err == nil {
		for v, x := range res.Outputs() {
			card(&b, v, x)
		}
	}
	_, err := io.WriteString(c.show.over(c.to.out), b.String())
	return err
}

// card draws one output; a text of several lines begins under its name.
func card(b *strings.Builder, v *spec.Variable, x any) {
	lines := strings.Split(strings.TrimRight(value.Text(x), "\r\n"), "\n")
	if len(lines) == 1 {
		fmt.Fprintf(b, "%s: %s\n", v.ID, clean(lines[0]))
		return
	}
	fmt.Fprintf(b, "%s:\n", v.ID)
	for _, l := range lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		fmt.Fprintf(b, "  %s%s\n", indent, clean(l))
	}
}

func (c *detailView) close() error { return nil }
func (c *detailView) abort()       {}

package terminal

import (
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// A table samples its first rows to choose the widths of its columns.
const (
	sampleRows = 24          // the number of rows that are sampled
	sampleTime = time.Second // how long they may take
)

// minColumn is the minimum width to which a column is cut, in terminal columns.
const minColumn = 6

// Column is a column of a table.
type Column struct {
	Name  string
	Right bool // aligned to the right, for numbers
	Min   int  // the minimum width, in terminal columns
}

// Table writes rows with aligned columns that fit the terminal. The widths are those
// of the first rows.
type Table struct {
	columns []Column
	width   int
	out     func() io.Writer
	widths  []int // chosen when enough rows are there
	rows    [][]string
	first   time.Time // when the first row was added
}

// NewTable returns a table for a terminal with width columns. It writes to what out
// returns at the time.
func NewTable(width int, out func() io.Writer, columns ...Column) *Table {
	return &Table{columns: columns, width: width, out: out}
}

// Row writes a row, or buffers it until the widths are chosen. The last cell of a
// row that has fewer cells than columns takes the rest of the line.
func (t *Table) Row(cells []string) error {
	if t.widths != nil {
		return t.write(cells)
	}
	if len(t.rows) == 0 {
		t.first = time.Now()
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < sampleRows && time.Since(t.first) < sampleTime {
		return nil
	}
	return t.Flush()
}

// Flush writes the rows that are buffered.
func (t *Table) Flush() error {
	if t.widths != nil || len(t.rows) == 0 {
		return nil
	}
	t.choose()
	var heads []string
	for _, c := range t.columns {
		heads = append(heads, c.Name)
	}
	if err := t.write(heads); err != nil {
		return err
	}
	for _, cells := range t.rows {
		if err := t.write(cells); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

// choose sets the widths to those of the cells. If they are wider than the terminal,
// it takes from the widest columns.
func (t *Table) choose() {
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		t.widths[i] = max(c.Min, runewidth.StringWidth(c.Name))
	}
	for _, cells := range t.rows {
		if len(cells) != len(t.columns) {
			continue // its last cell does not belong to one column
		}
		for i, c := range cells {
			t.widths[i] = max(t.widths[i], runewidth.StringWidth(c))
		}
	}
	room := t.width - 1 - 2*(len(t.widths)-1)
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

func (t *Table) write(cells []string) error {
	var b strings.Builder
	for i, c := range cells {
		width := t.widths[i]
		if i == len(cells)-1 {
			width = sum(t.widths[i:]) + 2*(len(t.widths)-1-i)
		}
		if i > 0 {
			b.WriteString("  ")
		}
		if t.columns[i].Right && (len(cells) == len(t.columns) || i < len(cells)-1) {
			b.WriteString(PadLeft(c, width))
			continue
		}
		b.WriteString(Pad(c, width))
	}
	_, err := io.WriteString(t.out(), " "+strings.TrimRight(b.String(), " ")+"\n")
	return err
}

// Package indexview shows the entries of indexes as text and as JSON lines.
package indexview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// View writes what is in indexes.
type View struct {
	Out   io.Writer
	Err   io.Writer // receives notes, such as that there are no entries
	Width int       // columns of the terminal; 0 for a file, where texts are longer
	JSON  bool      // one object per line instead of text
}

// excerptWidth is the length of an excerpt of an entry in a file.
const excerptWidth = 100

// Stats describes an index.
type Stats struct {
	Index      string `json:"index"`      // the id in the document
	Type       string `json:"type"`       // VectorIndex or DocumentIndex
	Name       string `json:"name"`       // of the collection in the store
	Store      string `json:"store"`      // the store
	Entries    int64  `json:"entries"`    // number of entries
	Documents  int64  `json:"documents"`  // number of documents that they came from; -1 if unknown
	Dimensions int    `json:"dimensions"` // length of the vectors; 0 without vectors
	Bytes      int64  `json:"bytes"`      // size in the store; -1 if unknown
	Detail     string `json:"detail,omitempty"`
}

// Describe combines what a document declares with what the store reports.
func Describe(x spec.Index, s index.Stats) Stats {
	store := ""
	if row, err := spec.StoreOf(x); err == nil {
		store = row.Name
	}
	return Stats{Index: x.EntityID(), Type: spec.TypeName(x), Name: x.Common().Name, Store: store, Entries: s.Entries,
		Documents: s.Documents, Dimensions: s.Dimensions, Bytes: s.Bytes, Detail: s.Detail}
}

// Stats writes a table of indexes.
func (v *View) Stats(rows []Stats) error {
	if v.JSON {
		for _, r := range rows {
			if err := v.encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	table := [][]string{{"index", "store", "entries", "documents", "dimensions", "size", ""}}
	for _, r := range rows {
		dimensions := "-"
		if r.Dimensions > 0 {
			dimensions = textfmt.Thousands(r.Dimensions)
		}
		size := "-"
		if r.Bytes >= 0 {
			size = textfmt.Bytes(r.Bytes)
		}
		table = append(table, []string{r.Index, r.Store, textfmt.Thousands(r.Entries), count(r.Documents), dimensions, size, r.Detail})
	}
	return v.table(table, 2)
}

func count(n int64) string {
	if n < 0 {
		return "-"
	}
	return textfmt.Thousands(n)
}

// table writes rows in columns; those from the column right on are right-aligned, except
// the last one.
func (v *View) table(rows [][]string, right int) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(terminal.Clean(cell)))
		}
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			switch cell = terminal.Clean(cell); {
			case i == len(row)-1:
				cells[i] = cell
			case i >= right:
				cells[i] = terminal.PadLeft(cell, widths[i])
			default:
				cells[i] = terminal.Pad(cell, widths[i])
			}
		}
		if _, err := fmt.Fprintln(v.Out, strings.TrimRight(strings.Join(cells, "  "), " ")); err != nil {
			return err
		}
	}
	return nil
}

// entry is an entry as JSON.
type entry struct {
	Score      *float64       `json:"score,omitempty"`
	ID         string         `json:"id"`
	Document   string         `json:"document,omitempty"`
	Place      string         `json:"place,omitempty"`
	Text       string         `json:"text"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Highlights []string       `json:"highlights,omitempty"`
}

func (v *View) encode(row any) error {
	enc := json.NewEncoder(v.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(row)
}

// List writes entries, one per line: id, place and the beginning of the text.
func (v *View) List(all iter.Seq2[index.Entry, error]) error {
	n := 0
	for e, err := range all {
		if err != nil {
			return err
		}
		n++
		if v.JSON {
			err = v.encode(entry{ID: e.ID, Document: e.Document, Place: Place(e), Text: e.Text, Metadata: e.Metadata})
		} else {
			err = v.line(e.ID, Place(e), e.Text)
		}
		if err != nil {
			return err
		}
	}
	return v.noteNone(n, "the index has no entries")
}

// Matches writes search results, one per line, with their scores.
func (v *View) Matches(matches []index.Match) error {
	for _, m := range matches {
		text := m.Text
		if len(m.Highlights) > 0 {
			text = strings.Join(m.Highlights, " … ")
		}
		var err error
		if v.JSON {
			err = v.encode(entry{Score: &m.Score, ID: m.ID, Document: m.Document, Place: Place(m.Entry), Text: m.Text, Metadata: m.Metadata, Highlights: m.Highlights})
		} else {
			err = v.line(fmt.Sprintf("%8.4f", m.Score), m.ID, Place(m.Entry), text)
		}
		if err != nil {
			return err
		}
	}
	return v.noteNone(len(matches), "nothing found")
}

func (v *View) noteNone(n int, note string) error {
	if n > 0 || v.JSON {
		return nil
	}
	_, err := fmt.Fprintln(v.Err, note)
	return err
}

// line writes columns, the last of which is a text that is shortened.
func (v *View) line(columns ...string) error {
	for i := range columns {
		columns[i] = strings.Join(strings.Fields(terminal.Clean(columns[i])), " ")
	}
	last := len(columns) - 1
	head := strings.Join(columns[:last], "  ")
	width := excerptWidth
	if v.Width > 0 {
		width = max(v.Width-runewidth.StringWidth(head)-2, 20)
	}
	_, err := fmt.Fprintf(v.Out, "%s  %s\n", head, runewidth.Truncate(columns[last], width, "…"))
	return err
}

// Place returns where an entry came from, as file:line or file, page N; "-" if its metadata
// has no file.
func Place(e index.Entry) string {
	text := func(key string) string {
		s, _ := e.Metadata[key].(string)
		return s
	}
	file := cmp.Or(text("file_path"), text("url"), text("uri"), text("file_name"))
	switch {
	case file == "":
		return "-"
	case e.Metadata["page"] != nil:
		return fmt.Sprintf("%s, page %v", file, e.Metadata["page"])
	case e.Metadata["page_label"] != nil:
		return fmt.Sprintf("%s, page %v", file, e.Metadata["page_label"])
	case e.Metadata["line_start"] != nil:
		return fmt.Sprintf("%s:%v", file, e.Metadata["line_start"])
	}
	return file
}

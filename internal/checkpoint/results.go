package checkpoint

import (
	"encoding/binary"
	"errors"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Results are all rows that a step made of one row, with the values of the
// variables that it writes.
type Results struct {
	Names []string     // the ids of the variables
	Rows  []*steps.Row // their Values are in the order of Names
	Err   error        // why the step failed after the rows; nil if it did not
}

// ResultsWriter encodes Results row by row: the names; for each row 1 and the row after
// its length; 0; and the error, if there is one.
type ResultsWriter struct {
	rows RowEncoder
	text []byte
	row  []byte
}

// NewResultsWriter returns a writer of the variables with these names and slots.
func NewResultsWriter(names []string, slots []int, code func(*steps.Error) string) *ResultsWriter {
	w := &ResultsWriter{rows: RowEncoder{Slots: slots, Code: code, Anonymous: true}}
	w.text = binary.AppendUvarint(w.text, uint64(len(names)))
	for _, name := range names {
		w.text = appendText(w.text, name)
	}
	return w
}

// Add appends a row.
func (w *ResultsWriter) Add(row *steps.Row) {
	w.row = w.rows.Append(w.row[:0], &steps.Row{Values: row.Values, Err: row.Err})
	w.text = appendText(append(w.text, 1), w.row)
}

// Len returns the number of bytes so far.
func (w *ResultsWriter) Len() int { return len(w.text) }

// Finish returns the encoding. err is why the step failed after its rows, or nil.
func (w *ResultsWriter) Finish(err error) []byte {
	w.text = append(w.text, 0)
	if err != nil {
		w.text = appendText(w.text, err.Error())
	}
	return w.text
}

// ReadResults decodes Results. Messages get new ids.
func ReadResults(text []byte) (*Results, error) {
	in := &reader{text: text}
	res := &Results{}
	rows := RowDecoder{NewIDs: true}
	for i := range in.length() {
		res.Names, rows.Slots = append(res.Names, in.string()), append(rows.Slots, i)
	}
	for in.byte() == 1 {
		row := &steps.Row{Values: make([]any, len(res.Names))}
		for i := range row.Values {
			row.Values[i] = value.Unset
		}
		if err := rows.Decode(in.bytes(), row); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, row)
	}
	if len(in.text) > 0 {
		res.Err = errors.New(in.string())
	}
	if in.bad || len(in.text) > 0 {
		return nil, errMalformed
	}
	return res, nil
}

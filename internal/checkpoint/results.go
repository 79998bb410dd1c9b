package checkpoint

import (
	"encoding/binary"
	"errors"
	"os"

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

// reader reads the parts of an encoding. After a missing part bad is true, and everything
// later is empty.
type reader struct {
	text []byte
	bad  bool
}

// next reads n bytes; it returns nil if there are fewer.
func (r *reader) next(n int) []byte {
	if n > len(r.text) {
		r.fail()
		return nil
	}
	b := r.text[:n:n]
	r.text = r.text[n:]
	return b
}

func (r *reader) fail() { r.text, r.bad = nil, true }

func (r *reader) byte() byte {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) varint() int64 { return number(r, binary.Varint) }

func (r *reader) uvarint() uint64 { return number(r, binary.Uvarint) }

// number reads a number with a function of package binary.
func number[T int64 | uint64](r *reader, decode func([]byte) (T, int)) T {
	v, n := decode(r.text)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.next(n)
	return v
}

// length reads the number of bytes or items that follow. It is at most the
// number of bytes left, so a damaged length does not allocate much.
func (r *reader) length() int {
	v := r.uvarint()
	if v > uint64(len(r.text)) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) bytes() []byte { return r.next(r.length()) }

func (r *reader) string() string { return string(r.bytes()) }

// RemoveUnused removes a journal unless a run has it open: then the error is ErrBusy. Where files have
// no locks, journals that are open are not recognized.
func RemoveUnused(path string) error { return whileUnused(path, removeLocked) }

// IsUsed reports whether a run has a journal open.
func IsUsed(path string) bool {
	return errors.Is(whileUnused(path, func(*os.File) error { return nil }), ErrBusy)
}

// whileUnused calls do while no run can open the journal.
func whileUnused(path string, do func(*os.File) error) error {
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // nothing is written
	if err := lock(f); err != nil {
		return err
	}
	return do(f)
}

// ErrNoProcess reports that the process that writes a journal is not known: none does, it runs in
// another container or on another computer, or the file system has no locks.
var ErrNoProcess = errors.New("no process of this computer writes it")

// Inspection is what a journal has.
type Inspection struct {
	Header   Header
	Finished int64 // input rows
	Failed   int64 // those of them that failed
}

// Inspect reads a journal, also one that a run is writing, and changes nothing. The errors are those of
// Open.
func Inspect(path string, key []byte) (Inspection, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return Inspection{}, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	j := &Journal{path: path, file: f, chain: newChain(key)}
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return Inspection{}, wrapError(path, os.ErrNotExist)
	}
	if err := j.scan(); err != nil {
		return Inspection{}, wrapError(path, err)
	}
	in := Inspection{Header: j.header}
	in.Finished, in.Failed = j.Rows()
	return in, nil
}

// Writer returns the id of the process that has a journal open. Without one, the error is ErrNoProcess.
func Writer(path string) (pid int, err error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return 0, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	if pid = writer(f); pid <= 0 {
		return 0, ErrNoProcess
	}
	return pid, nil
}

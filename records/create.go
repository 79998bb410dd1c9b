package records

import (
	"bufio"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// encoder writes records in one format.
type encoder interface {
	// write adds a record whose values were brought to the columns' kinds.
	write(values []any) error
	// close writes what ends the text; it does not close what it writes to.
	close() error
}

// Writer writes records to a file, which comes into being under its name when
// Close succeeds and not before.
type Writer struct {
	path    string
	columns []Column
	enc     encoder
	file    *pending // nil for a Writer over an io.Writer
	buf     *bufio.Writer
	gzip    *gzip.Writer
	row     []any
	rows    int64
	err     error // the first failure to write; all that follows fails with it
	done    bool
}

// Create begins a file in the format of its name, through gzip where that ends
// in .gz. Its folder is made where it does not exist. The error is a *FileError
// that names the file.
func Create(path string, columns []Column) (*Writer, error) {
	format, ok := FormatOf(path)
	if !ok {
		return nil, &FileError{Path: path, Reason: "its name tells no format: .csv, .tsv, .json, .jsonl or .parquet is expected"}
	}
	file, err := createPending(path)
	if err != nil {
		return nil, err
	}
	var out io.Writer = file.out
	w := &Writer{path: path, file: file}
	if strings.HasSuffix(path, ".gz") {
		w.gzip = gzip.NewWriter(out)
		out = w.gzip
	}
	if err := w.start(out, format, columns); err != nil {
		file.abort()
		return nil, err
	}
	return w, nil
}

// NewWriter writes records to out, which stays open. Flush after each record
// what a reader at the other end should see at once.
func NewWriter(out io.Writer, format Format, columns []Column) (*Writer, error) {
	w := &Writer{path: "output"}
	if err := w.start(out, format, columns); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Writer) start(out io.Writer, format Format, columns []Column) error {
	w.buf = bufio.NewWriterSize(out, 64<<10)
	w.columns = columns
	w.row = make([]any, len(columns))
	var err error
	switch format {
	case CSV:
		w.enc = newCSVEncoder(w.buf, ',', columns)
	case TSV:
		w.enc = newCSVEncoder(w.buf, '\t', columns)
	case JSON:
		w.enc = newJSONEncoder(w.buf, columns, true)
	case JSONL:
		w.enc = newJSONEncoder(w.buf, columns, false)
	case Parquet:
		w.enc, err = newParquetEncoder(w.buf, columns)
	default:
		err = fmt.Errorf("%q is not a format of records", string(format))
	}
	if err != nil {
		return &FileError{Path: w.path, Reason: err.Error(), Err: err}
	}
	return nil
}

// ValueError says that a value does not fit its column. The record was not
// written; others can be.
type ValueError struct {
	Column string // the column's name
	Reason string // what is wrong
}

// Error names the column.
func (e *ValueError) Error() string { return fmt.Sprintf("column %q: %s", e.Column, e.Reason) }

// Write adds a record: one value for each column. Its error concerns this
// record alone when it is a *ValueError, and then nothing was written; any
// other error is a *FileError and final.
func (w *Writer) Write(values ...any) error {
	if w.err != nil {
		return w.err
	}
	if len(values) != len(w.columns) {
		return &ValueError{Reason: fmt.Sprintf("the record has %s for %s", plural(len(values), "value"), plural(len(w.columns), "column"))}
	}
	for i, c := range w.columns {
		v, err := fit(c.Kind, values[i])
		if err != nil {
			return &ValueError{Column: c.Name, Reason: err.Error()}
		}
		w.row[i] = v
	}
	if err := w.enc.write(w.row); err != nil {
		return w.fail(err)
	}
	w.rows++
	return nil
}

func (w *Writer) fail(err error) error {
	var file *FileError
	if !errors.As(err, &file) {
		err = &FileError{Path: w.path, Reason: "cannot be written: " + cause(err), Err: err}
	}
	w.err = err
	return err
}

// cause is the operating system's word without the path that it may carry.
func cause(err error) string {
	var perr *fs.PathError
	var lerr *os.LinkError
	switch {
	case errors.As(err, &perr):
		return perr.Err.Error()
	case errors.As(err, &lerr):
		return lerr.Err.Error()
	}
	return err.Error()
}

// Rows is how many records were written.
func (w *Writer) Rows() int64 { return w.rows }

// Flush passes what was written on to the file or the io.Writer. A JSON array
// and a Parquet file are complete only after Close.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buf.Flush(); err != nil {
		return w.fail(err)
	}
	return nil
}

// Close completes the file, makes it durable and gives it its name. When it
// fails, no file has come into being. A second call does nothing.
func (w *Writer) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	err := w.finish()
	if w.file == nil {
		return err
	}
	if err == nil {
		if err = w.file.commit(); err != nil {
			err = w.fail(err)
		}
	}
	if err != nil {
		w.file.abort()
	}
	return err
}

// finish writes the end of the text.
func (w *Writer) finish() error {
	if w.err != nil {
		return w.err
	}
	if err := w.enc.close(); err != nil {
		return w.fail(err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if w.gzip != nil {
		if err := w.gzip.Close(); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// Abort gives the file up; a file that had the name before stays. After Close
// it does nothing.
func (w *Writer) Abort() {
	if w.done || w.file == nil {
		return
	}
	w.done = true
	w.file.abort()
}

// pending is a file under a temporary name beside its final one.
type pending struct {
	out   *os.File
	final string
	plain bool // no regular file: a pipe or a device, written in place
}

// createPending makes the folder and the temporary file.
func createPending(path string) (*pending, error) {
	final := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		final = real // the link stays, its target is replaced
	}
	mode := fs.FileMode(0o666) // less what the umask takes
	info, err := os.Stat(final)
	switch {
	case err == nil && info.IsDir():
		return nil, &FileError{Path: path, Reason: "is a directory, not a file"}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(final, os.O_WRONLY, 0)
		if err != nil {
			return nil, writeError(path, err)
		}
		return &pending{out: f, final: final, plain: true}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if err := writable(final); err != nil {
			return nil, writeError(path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return nil, writeError(path, err)
	}
	f, err := os.OpenFile(temporary(final), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, writeError(path, err)
	}
	return &pending{out: f, final: final}, nil
}

// writable refuses to replace a file that its owner has made read-only: a
// rename would not ask.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// writeError says why a file cannot be written.
func writeError(path string, err error) *FileError {
	return &FileError{Path: path, Reason: "cannot be written: " + cause(err), Err: err}
}

// temporary is a free name beside path, hidden from listings.
func temporary(path string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails since Go 1.24
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(b[:])+".tmp")
}

// commit makes the text durable, then visible.
func (p *pending) commit() error {
	if p.plain {
		return p.out.Close()
	}
	if err := p.out.Sync(); err != nil {
		return err
	}
	if err := p.out.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.out.Name(), p.final); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(p.final)); err == nil {
		_ = dir.Sync()  // not every file system can; the file itself is safe
		_ = dir.Close() // only synced
	}
	return nil
}

// abort takes the temporary file away.
func (p *pending) abort() {
	_ = p.out.Close() // may be closed already
	if !p.plain {
		_ = os.Remove(p.out.Name()) // what cannot be removed is a hidden file, no harm
	}
}

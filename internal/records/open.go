package records

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// maxRecord is the most bytes of text that one record may have: a quote that is
// never closed must not read a whole file into memory.
const maxRecord = 64 << 20

// peekSize is how much of a file is looked at to tell what it is.
const peekSize = 4096

// bufferSize is how many bytes are read from a file at once.
const bufferSize = 64 << 10

// Options are how to read a file.
type Options struct {
	Format Format // what the file is; empty: told by its name, then by its content
}

// Reader reads the records of a file.
type Reader struct {
	path    string // as people may see it
	format  Format
	read    atomic.Int64
	size    int64       // of the file in bytes, 0 where that is not known
	whole   io.ReaderAt // the file, where it can be read at any place
	total   int64       // rows, -1 where unknown
	columns []string
	next    func() (Record, error)
	number  int64
	closers []io.Closer // in the order in which they were opened
}

// textSource is what a text format reads from.
type textSource struct {
	path string
	in   *bufio.Reader
}

// Open opens a file of records: on this machine, or at an address that package
// blob knows, which is then read as it comes. Cancelling the context ends the
// reading of such an address. The error is a *FileError that names the file.
func Open(ctx context.Context, path string, opts Options) (*Reader, error) {
	r := &Reader{path: remotefs.Redacted(path), total: -1}
	in, err := r.open(ctx, path)
	if err == nil {
		err = r.start(in, path, opts)
	}
	if err != nil {
		_ = r.Close() // nothing was written
		return nil, err
	}
	return r, nil
}

// open opens the file's bytes.
func (r *Reader) open(ctx context.Context, path string) (io.Reader, error) {
	if _, remote := remotefs.Remote(path); !remote {
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, f)
		info, err := f.Stat()
		if err != nil {
			return nil, fileError(r.path, err)
		}
		r.size, r.whole = info.Size(), f
		return f, nil
	}
	in, err := remotefs.Open(ctx, path)
	if err != nil {
		return nil, fileError(r.path, err)
	}
	r.closers = append(r.closers, in)
	return in, nil
}

// openFile opens a file that can be read as one.
func openFile(path string) (*os.File, error) {
	local := remotefs.Path(path)
	info, err := os.Stat(local)
	if err != nil {
		return nil, fileError(path, err)
	}
	if info.IsDir() {
		return nil, &FileError{Path: path, Reason: "is a directory, not a file"}
	}
	f, err := os.Open(local)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}

// fileError puts what the operating system or a server said in a user's words.
func fileError(path string, err error) *FileError {
	reason := "cannot be read"
	var known *FileError
	var perr *fs.PathError
	var told interface{ Reason() string }
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file"
	case errors.As(err, &told):
		reason = told.Reason()
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.As(err, &perr):
		reason = perr.Err.Error()
	}
	return &FileError{Path: path, Reason: reason, Err: err}
}

// start finds the format out and sets up its reader.
func (r *Reader) start(file io.Reader, path string, opts Options) error {
	in := bufio.NewReaderSize(&countingReader{file, &r.read}, bufferSize)
	head, err := in.Peek(peekSize)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return fileError(r.path, err)
	}
	if packed := compressionOf(head); packed != "" {
		if in, head, err = r.unpack(packed, in); err != nil {
			return err
		}
		r.whole = nil
	}
	if r.format, err = detect(r.path, name(path), opts.Format, head); err != nil {
		return err
	}
	src := textSource{r.path, in}
	switch r.format {
	case CSV, TSV:
		return r.startCSV(src, head)
	case JSONL, JSON:
		return r.startJSON(src, head)
	}
	file2, size, err := r.random(in)
	if err != nil {
		return err
	}
	if r.format == Excel {
		return r.startExcel(file2, size)
	}
	return r.startParquet(file2, size)
}

// countingReader counts the bytes that are read.
type countingReader struct {
	in   io.Reader
	read *atomic.Int64
}

func (m *countingReader) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.read.Add(int64(n))
	return n, err
}

// Path is the file's name as people may see it: an address without credentials.
func (r *Reader) Path() string { return r.path }

// Format is what the file is.
func (r *Reader) Format() Format { return r.format }

// Columns are the file's columns, in order, where they are known before the
// first record: CSV, TSV, Excel and Parquet. Nil for JSON, whose objects differ.
func (r *Reader) Columns() []string { return r.columns }

// Total is how many records the file has, where it says so: Parquet.
func (r *Reader) Total() (rows int64, known bool) { return max(r.total, 0), r.total >= 0 }

// Progress is how many bytes of the file were read, and its size, 0 where that
// is not known. It may be called from any goroutine.
func (r *Reader) Progress() (read, size int64) { return r.read.Load(), r.size }

// All yields the records from where the reader stands. A *RowError comes with
// what could be read of its record, and the next record follows; any other
// error ends the sequence.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(rec, err) {
				return
			}
			var row *RowError
			if err != nil && !errors.As(err, &row) {
				return
			}
		}
	}
}

// Next is the next record; io.EOF after the last. See All for other errors.
func (r *Reader) Next() (Record, error) {
	rec, err := r.next()
	if err == nil {
		r.number++
		rec.Number = r.number
		return rec, nil
	}
	if errors.Is(err, io.EOF) {
		return Record{}, io.EOF
	}
	r.number++
	rec.Number = r.number
	var row *RowError
	var file *FileError
	switch {
	case errors.As(err, &row):
		row.Path, row.Number, row.Line = r.path, rec.Number, rec.Line
	case !errors.As(err, &file):
		err = fileError(r.path, err)
	}
	return rec, err
}

// Close gives the file back.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c.Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Count reads a file to its end and tells how many records it has, faulty ones
// included.
func Count(ctx context.Context, path string, opts Options) (int64, error) {
	r, err := Open(ctx, path, opts)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }() // only read
	if n, known := r.Total(); known {
		return n, nil
	}
	for _, err := range r.All() {
		var row *RowError
		if err != nil && !errors.As(err, &row) {
			return r.number, err
		}
	}
	return r.number, nil
}

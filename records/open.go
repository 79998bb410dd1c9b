package records

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// maxRecord is the most bytes of text that one record may have: a quote that is
// never closed must not read a whole file into memory.
const maxRecord = 64 << 20

// peekSize is how much of a file is looked at to tell what it is.
const peekSize = 4096

// Options are how to read a file.
type Options struct {
	Format Format // what the file is; empty: told by its name, then by its content
}

// Reader reads the records of a file.
type Reader struct {
	path    string
	format  Format
	file    *os.File
	size    int64
	read    atomic.Int64
	total   int64 // rows, -1 where unknown
	columns []string
	next    func() (Record, error)
	number  int64
}

// source is what a text format reads from.
type textSource struct {
	path string
	in   *bufio.Reader
}

// Open opens a file of records. The error is a *FileError that names the file.
func Open(path string, opts Options) (*Reader, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, file: f, total: -1}
	if err := r.start(opts); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return r, nil
}

// openFile opens a file that can be read as one.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if info.IsDir() {
		return nil, &FileError{Path: path, Reason: "is a directory, not a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}

// fileError puts what the operating system said in a user's words.
func fileError(path string, err error) *FileError {
	reason := "cannot be read"
	var perr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file"
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.As(err, &perr):
		reason = perr.Err.Error()
	}
	return &FileError{Path: path, Reason: reason, Err: err}
}

// start finds the format out and sets up its reader.
func (r *Reader) start(opts Options) error {
	info, err := r.file.Stat()
	if err != nil {
		return fileError(r.path, err)
	}
	r.size = info.Size()
	in := bufio.NewReaderSize(&meter{r.file, &r.read}, 64<<10)
	head, err := in.Peek(peekSize)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return fileError(r.path, err)
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		if in, head, err = unzip(in); err != nil {
			return &FileError{Path: r.path, Reason: "is not a gzip file that can be read", Err: err}
		}
	}
	if r.format, err = detect(r.path, opts.Format, head); err != nil {
		return err
	}
	src := textSource{r.path, in}
	switch r.format {
	case CSV, TSV:
		return r.startCSV(src, head)
	case JSONL, JSON:
		return r.startJSON(src, head)
	default:
		return r.startParquet()
	}
}

func unzip(in *bufio.Reader) (*bufio.Reader, []byte, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	plain := bufio.NewReaderSize(z, 64<<10)
	head, err := plain.Peek(peekSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	return plain, head, nil
}

var (
	bomUTF8    = []byte{0xef, 0xbb, 0xbf}
	magicPQ    = []byte("PAR1")
	magicZip   = []byte("PK\x03\x04")
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}
)

// detect tells what the file is, by what was asked for, else its name, else its
// content, and refuses a content that cannot be that.
func detect(path string, asked Format, head []byte) (Format, error) {
	format := asked
	if format == "" {
		format, _ = FormatOf(path)
	}
	fault := func(reason string, args ...any) error {
		return &FileError{Path: path, Reason: fmt.Sprintf(reason, args...)}
	}
	body := bytes.TrimSpace(bytes.TrimPrefix(head, bomUTF8))
	switch {
	case len(body) == 0 && len(head) < peekSize:
		return "", fault("the file is empty")
	case bytes.HasPrefix(head, magicPQ):
		if format != Parquet && format != "" {
			return "", fault("is a Parquet file, not %s: name it .parquet", label(format))
		}
		return Parquet, nil
	case format == Parquet:
		return "", fault("is not a Parquet file")
	case bytes.HasPrefix(head, magicZip):
		return "", fault("is a zip archive or an Excel workbook: save it as CSV")
	case bytes.HasPrefix(head, bomUTF16LE), bytes.HasPrefix(head, bomUTF16BE):
		return "", fault("is UTF-16 text: save it as UTF-8")
	case bytes.IndexByte(head, 0) >= 0:
		return "", fault("holds binary data, not %s", label(format))
	}
	return detectText(fault, format, body)
}

// detectText tells the text formats apart by how the text begins.
func detectText(fault func(string, ...any) error, format Format, body []byte) (Format, error) {
	jsonish := bytes.HasPrefix(body, []byte(`{"`)) || bytes.HasPrefix(body, []byte(`[{`)) || bytes.Equal(body, []byte("[]"))
	switch {
	case (format == CSV || format == TSV) && jsonish:
		return "", fault("holds JSON, not %s: name it .json or .jsonl", label(format))
	case format == JSON && body[0] != '{' && body[0] != '[':
		return "", fault("does not hold JSON records: an array of objects is expected")
	case format != "":
		return format, nil
	case body[0] == '{' || body[0] == '[':
		return JSON, nil
	case !utf8.Valid(body[:max(0, len(body)-utf8.UTFMax)]):
		return "", fault("holds binary data, not %s", label(""))
	}
	line, _, _ := strings.Cut(string(body), "\n")
	if strings.Contains(line, "\t") && !strings.Contains(line, ",") {
		return TSV, nil
	}
	return CSV, nil
}

// label is a format's name in a message.
func label(f Format) string {
	switch f {
	case JSONL:
		return "JSON lines"
	case Parquet:
		return "Parquet"
	case "":
		return "CSV, TSV, JSON, JSON lines or Parquet"
	}
	return strings.ToUpper(string(f))
}

// meter counts the bytes that are read.
type meter struct {
	in   io.Reader
	read *atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.read.Add(int64(n))
	return n, err
}

// Path is the file's name as it was given to Open.
func (r *Reader) Path() string { return r.path }

// Format is what the file is.
func (r *Reader) Format() Format { return r.format }

// Columns are the file's columns, in order, where they are known before the
// first record: CSV, TSV and Parquet. Nil for JSON, whose objects differ.
func (r *Reader) Columns() []string { return r.columns }

// Total is how many records the file has, where it says so: Parquet.
func (r *Reader) Total() (rows int64, known bool) { return max(r.total, 0), r.total >= 0 }

// Progress is how many bytes of the file were read, and its size. It may be
// called from any goroutine.
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
	if errors.Is(err, io.EOF) {
		return Record{}, io.EOF
	}
	r.number++
	rec.Number = r.number
	var row *RowError
	if errors.As(err, &row) {
		row.Path, row.Number, row.Line = r.path, rec.Number, rec.Line
	}
	return rec, err
}

// Close gives the file back.
func (r *Reader) Close() error { return r.file.Close() }

// Count reads a file to its end and tells how many records it has, faulty ones
// included.
func Count(path string, opts Options) (int64, error) {
	r, err := Open(path, opts)
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

package records

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// maxRecord is the maximum number of bytes of a record's text: an unclosed quote
// must not read a whole file into memory.
const maxRecord = 64 << 20

// peekSize is how many bytes of a file are used to detect its format.
const peekSize = 4096

const bufferSize = 64 << 10

// Options configure how a file is read.
type Options struct {
	Format Format      // the file's format; if empty, it is detected from the name, then from the content
	Table  *spec.Table // how the file is read; nil for nothing in particular. Keys that the format does not have do nothing

	// Variables read the columns of their names. Invalid cells of other columns do not fail their row, and
	// the values of other columns of a Parquet file are nil. Nil for all columns.
	Variables []*spec.Variable
	// Rest is whether the caller wants the values of the other columns, too.
	Rest bool
}

// Reader reads the records of a file.
type Reader struct {
	path    string // for messages: without credentials
	format  Format
	read    atomic.Int64
	size    int64       // of the file in bytes, 0 if unknown
	whole   io.ReaderAt // the file, if it can be read at any offset
	live    bool        // a stream whose end may be far away: rows are read as they arrive
	total   int64       // rows, -1 if unknown
	columns []string
	next    func() (Record, error)
	skip    func() error // next without the values; nil if next is as fast
	number  int64
	table   spec.Table
	vars    []*spec.Variable // that read columns; nil if all are read
	rest    bool             // the values of other columns are wanted
	sheets  []string         // the names of the sheets of a workbook
	charset string           // the name of a text file's charset
	closers []io.Closer      // in the order in which they were opened
}

// Open opens a file of records. path is a local file or a URL that package remotefs
// knows, which is streamed; canceling ctx then stops the stream. The error is a
// *FileError that names the file.
func Open(ctx context.Context, path string, opts Options) (*Reader, error) {
	r := &Reader{path: remotefs.Redacted(path), total: -1}
	in, err := r.open(ctx, path)
	if err == nil {
		err = r.start(ctx, in, path, opts)
	}
	if err != nil {
		_ = r.Close() // the first error is returned
		return nil, err
	}
	return r, nil
}

// OpenStream reads records from a stream, such as a pipe, as they arrive. name is its name
// for messages. Closing the Reader does not close the stream. The format is detected from
// the first line if opts has none.
func OpenStream(ctx context.Context, in io.Reader, name string, opts Options) (*Reader, error) {
	r := &Reader{path: name, total: -1, live: true}
	if err := r.start(ctx, in, "", opts); err != nil {
		_ = r.Close() // the first error is returned
		return nil, err
	}
	return r, nil
}

// open opens the file's bytes.
func (r *Reader) open(ctx context.Context, path string) (io.Reader, error) {
	if _, remote := remotefs.Remote(trust.From(ctx).Place(path)); !remote {
		f, err := openFile(ctx, path)
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, f)
		info, err := f.Stat()
		if err != nil {
			return nil, fileError(r.path, err)
		}
		if r.live = !info.Mode().IsRegular(); !r.live {
			r.size, r.whole = info.Size(), f
		}
		return f, nil
	}
	in, err := remotefs.Open(ctx, path)
	if err != nil {
		return nil, fileError(r.path, err)
	}
	r.closers = append(r.closers, in)
	return in, nil
}

func openFile(ctx context.Context, path string) (*os.File, error) {
	if err := trust.From(ctx).Read(path); err != nil {
		return nil, err
	}
	local := remotefs.Path(trust.From(ctx).Place(path))
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

// fileError describes an error of the operating system or a server.
func fileError(path string, err error) *FileError {
	reason := "cannot be read"
	var known *FileError
	var perr *fs.PathError
	var remote interface{ Reason() string }
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file"
	case errors.As(err, &remote):
		reason = remote.Reason()
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.As(err, &perr):
		reason = perr.Err.Error()
	}
	return &FileError{Path: path, Reason: reason, Err: err}
}

// start detects the format and sets up its reader.
func (r *Reader) start(ctx context.Context, file io.Reader, path string, opts Options) error {
	if opts.Table != nil {
		r.table = *opts.Table
	}
	r.vars, r.rest = opts.Variables, opts.Rest
	in := bufio.NewReaderSize(&countingReader{file, &r.read}, bufferSize)
	head, err := r.peek(in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return fileError(r.path, err)
	}
	if packed := compressionOf(head); packed != "" {
		if in, head, err = r.unpack(packed, in); err != nil {
			return err
		}
		r.whole = nil
	}
	if in, head, err = r.decoded(in, head); err != nil {
		return err
	}
	if r.format, err = detect(r.path, name(path), opts.Format, head); err != nil {
		return err
	}
	if _, named := FormatOf(name(path)); r.format == JSON && opts.Format == "" && !named && isLine(head) {
		r.format = JSONL
	}
	switch r.format {
	case CSV, TSV:
		return r.startCSV(in, head)
	case JSONL, JSON:
		return r.startJSON(in, head)
	}
	var codec Codec
	if r.format != Excel {
		if codec, err = codecOf(ctx, r.format); err != nil {
			return fileError(r.path, err)
		}
	}
	whole, size, err := r.random(in)
	if err != nil {
		return err
	}
	if r.format == Excel {
		return r.startExcel(whole, size)
	}
	return r.startCodec(codec, whole, size)
}

// decoded returns a text file as UTF-8, with its first bytes.
func (r *Reader) decoded(in *bufio.Reader, head []byte) (*bufio.Reader, []byte, error) {
	if bytes.HasPrefix(head, magicPQ) || bytes.HasPrefix(head, magicZip) || bytes.HasPrefix(head, magicOLE) {
		return in, head, nil
	}
	enc, name, err := charset(&r.table, string(head))
	r.charset = name
	if err != nil {
		return nil, nil, &FileError{Path: r.path, Reason: fmt.Sprintf("the encoding %q is unknown", name), Err: err}
	}
	if enc == nil {
		return in, head, nil
	}
	in, r.whole = bufio.NewReaderSize(enc.NewDecoder().Reader(in), bufferSize), nil
	head, err = r.peek(in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, nil, &FileError{Path: r.path, Reason: "is not text in " + name, Err: err}
	}
	return in, head, nil
}

// peek returns the first bytes of a file: of a stream, those that arrive first, and at
// least a line of them.
func (r *Reader) peek(in *bufio.Reader) ([]byte, error) {
	if !r.live {
		return in.Peek(peekSize)
	}
	for want := 1; ; {
		if _, err := in.Peek(want); err != nil {
			head, _ := in.Peek(in.Buffered()) // cannot fail
			return head, err
		}
		head, _ := in.Peek(in.Buffered()) // cannot fail
		line := bytes.IndexByte(bytes.TrimLeft(head, " \t\r\n"), '\n')
		if want = len(head) + 1; want > peekSize || line >= 0 {
			return head, nil
		}
	}
}

// isLine reports whether a text begins with a line that is a whole object, but not an
// object of columns.
func isLine(head []byte) bool {
	line, _, found := bytes.Cut(bytes.TrimPrefix(head, bomUTF8), []byte{'\n'})
	line = bytes.TrimSpace(line)
	if !found || len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return false
	}
	_, values, err := value.ParseObject(string(line), nil)
	_, isTable := tableOf(values)
	return err == nil && !isTable
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

// Path returns the file's name for messages: a URL without credentials.
func (r *Reader) Path() string { return r.path }

// Format returns the file's format.
func (r *Reader) Format() Format { return r.format }

// Columns returns the file's columns, in order, if they are known before the first
// record: for CSV, TSV, Excel and Parquet. It is nil for JSON, whose objects may differ.
func (r *Reader) Columns() []string { return r.columns }

// Total returns the number of records if the file states it, as Parquet does.
func (r *Reader) Total() (rows int64, known bool) { return max(r.total, 0), r.total >= 0 }

// Progress returns how many bytes of the file were read, and its size, 0 if unknown.
// It is safe for concurrent use.
func (r *Reader) Progress() (read, size int64) { return r.read.Load(), r.size }

// All yields the records that were not read yet. A *RowError comes with what could
// be read of its record, and the next record follows; any other error ends the
// sequence.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(rec, err) {
				return
			}
			if _, row := errors.AsType[*RowError](err); err != nil && !row {
				return
			}
		}
	}
}

// Next returns the next record; io.EOF after the last. See All for other errors.
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

// Close closes the file.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c.Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Count reads a file to its end and returns the number of its records, invalid ones
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
	return r.count()
}

// count reads to the end and returns the number of records. It does not convert values.
func (r *Reader) count() (rows int64, err error) {
	skip := r.skip
	if skip == nil {
		skip = func() error { _, err := r.next(); return err }
	}
	for ; ; rows++ {
		err := skip()
		var row *RowError
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil && !errors.As(err, &row):
			return rows + 1, err
		}
	}
}

var (
	bomUTF8    = []byte{0xef, 0xbb, 0xbf}
	magicPQ    = []byte("PAR1")
	magicZip   = []byte("PK\x03\x04")
	magicOLE   = []byte{0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1}
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}
)

// name returns the part of a path or URL that has the file's extension: the path of
// an HTTP URL, without its query.
func name(path string) string {
	if scheme, _ := remotefs.Remote(path); scheme == "http" || scheme == "https" {
		if u, err := url.Parse(path); err == nil {
			return u.Path
		}
	}
	return path
}

// detect returns the file's format: the requested one, else that of the name, else
// that of the content. It returns an error if the content cannot be of that format.
func detect(path, name string, requested Format, head []byte) (Format, error) {
	format := requested
	if format == "" {
		format, _ = FormatOf(name)
	}
	errorf := func(reason string, args ...any) error {
		return &FileError{Path: path, Reason: fmt.Sprintf(reason, args...)}
	}
	body := bytes.TrimSpace(bytes.TrimPrefix(head, bomUTF8))
	if len(body) == 0 && len(head) < peekSize {
		return "", errorf("the file is empty")
	}
	if binary, err := detectBinary(errorf, format, head); binary != "" || err != nil {
		return binary, err
	}
	return detectText(errorf, format, body)
}

// detectBinary detects a binary format by its first bytes; empty for text.
func detectBinary(errorf func(string, ...any) error, format Format, head []byte) (Format, error) {
	switch {
	case bytes.HasPrefix(head, magicPQ):
		if format != Parquet && format != "" {
			return "", errorf("is a Parquet file, not %s: rename it to .parquet", label(format))
		}
		return Parquet, nil
	case format == Parquet:
		return "", errorf("is not a Parquet file")
	case bytes.HasPrefix(head, magicZip):
		if format != Excel && format != "" {
			return "", errorf("is a zip archive or an Excel workbook, not %s: rename a workbook to .xlsx", label(format))
		}
		return Excel, nil
	case bytes.HasPrefix(head, magicOLE):
		return "", errorf("is an Excel workbook in the old format (.xls): save it as .xlsx")
	case format == Excel:
		return "", errorf("is not an Excel workbook")
	case bytes.Count(head, []byte{0})*3 > len(head): // every second byte of text in Latin letters
		return "", errorf("contains binary data, or UTF-16 text, which needs the table option encoding=utf-16le or encoding=utf-16be")
	case bytes.IndexByte(head, 0) >= 0:
		return "", errorf("contains binary data, not %s", label(format))
	}
	return "", nil
}

// detectText detects a text format by its first characters.
func detectText(errorf func(string, ...any) error, format Format, body []byte) (Format, error) {
	jsonish := bytes.HasPrefix(body, []byte(`{"`)) || bytes.HasPrefix(body, []byte(`[{`)) || bytes.Equal(body, []byte("[]"))
	switch {
	case (format == CSV || format == TSV) && jsonish:
		return "", errorf("contains JSON, not %s: rename it to .json or .jsonl", label(format))
	case format == JSON && body[0] != '{' && body[0] != '[':
		return "", errorf("does not contain JSON records: an array of objects is expected")
	case format != "":
		return format, nil
	case body[0] == '{' || body[0] == '[':
		return JSON, nil
	case !utf8.Valid(body[:max(0, len(body)-utf8.UTFMax)]):
		return "", errorf("contains binary data, not %s", label(""))
	}
	line, _, _ := strings.Cut(string(body), "\n")
	if strings.Contains(line, "\t") && !strings.Contains(line, ",") {
		return TSV, nil
	}
	return CSV, nil
}

// label returns a format's name for messages.
func label(f Format) string {
	switch f {
	case JSONL:
		return "JSON lines"
	case Parquet:
		return "Parquet"
	case Excel:
		return "Excel"
	case "":
		return "CSV, TSV, JSON, JSON lines, Excel or Parquet"
	}
	return strings.ToUpper(string(f))
}

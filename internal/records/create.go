package records

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Encoder writes records in one format.
type Encoder interface {
	// Write adds a record whose values CheckValue has returned. After a *ValueError
	// nothing was written, and the next record can be.
	Write(values []any) error
	// Close writes the end of the format; it does not close the underlying writer.
	Close() error
}

// Writer writes records to a file, which appears under its name only when Close
// succeeds.
type Writer struct {
	path    string
	columns []Column
	enc     Encoder
	file    remotefs.Upload // nil for a Writer over an io.Writer
	buf     *bufio.Writer
	packed  io.WriteCloser // compresses; nil if the file is not compressed
	row     []any
	rows    int64
	err     error // the first error of a write; later writes return it
	done    bool
}

// Create creates a file in the format of its extension, compressed if that is
// followed by .gz or .zst. path is a local file, whose directory is created if
// needed, or a URL that package remotefs can write; canceling ctx then stops the
// upload. The error is a *FileError that names the file.
func Create(ctx context.Context, path string, columns []Column) (*Writer, error) {
	shown := remotefs.Redacted(path)
	if err := Writable(shown); err != nil {
		return nil, &FileError{Path: shown, Reason: strings.TrimPrefix(err.Error(), shown+": ")}
	}
	format, _ := FormatOf(path)
	return CreateFormat(ctx, path, format, columns)
}

// CreateFormat is Create in a given format, whatever the extension.
func CreateFormat(ctx context.Context, path string, format Format, columns []Column) (*Writer, error) {
	shown := remotefs.Redacted(path)
	file, err := remotefs.Create(ctx, path)
	if err != nil {
		return nil, writeError(shown, err)
	}
	w := &Writer{path: shown, file: file}
	out := io.Writer(file)
	packing, _ := compressionNamed(path)
	if w.packed, err = pack(packing, file); w.packed != nil {
		out = w.packed
	}
	if err == nil {
		err = w.start(ctx, out, format, columns)
	}
	if err != nil {
		_ = file.Abort() // the first error is returned
		return nil, err
	}
	return w, nil
}

// NewWriter returns a Writer to out, which it does not close. Call Flush after each
// record that a reader should see at once.
func NewWriter(ctx context.Context, out io.Writer, format Format, columns []Column) (*Writer, error) {
	w := &Writer{path: "output"}
	if err := w.start(ctx, out, format, columns); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Writer) start(ctx context.Context, out io.Writer, format Format, columns []Column) error {
	w.buf = bufio.NewWriterSize(out, bufferSize)
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
	default:
		var c Codec
		if c, err = codecOf(ctx, format); err == nil {
			w.enc, err = c.NewEncoder(w.buf, columns)
		}
	}
	if err != nil {
		return &FileError{Path: w.path, Reason: err.Error(), Err: err}
	}
	return nil
}

// ValueError reports a value that does not fit its column. The record was not
// written; the next ones can be.
type ValueError struct {
	Column string // the column's name
	Reason string // what is wrong
}

// Error names the column.
func (e *ValueError) Error() string { return fmt.Sprintf("column %q: %s", e.Column, e.Reason) }

// Write adds a record: one value for each column, as a Reader returns it or a
// run-time value of package value. A *ValueError concerns this record only, and
// nothing was written; any other error is a *FileError and final.
func (w *Writer) Write(values ...any) error {
	if w.err != nil {
		return w.err
	}
	if len(values) != len(w.columns) {
		return &ValueError{Reason: fmt.Sprintf("the record has %s for %s", textfmt.Count(len(values), "value"), textfmt.Count(len(w.columns), "column"))}
	}
	for i, c := range w.columns {
		v, err := CheckValue(c.Kind, values[i])
		if err != nil {
			return &ValueError{Column: c.Name, Reason: err.Error()}
		}
		w.row[i] = v
	}
	if err := w.enc.Write(w.row); err != nil {
		if errors.As(err, new(*ValueError)) {
			return err
		}
		return w.fail(err)
	}
	w.rows++
	return nil
}

func (w *Writer) fail(err error) error {
	var file *FileError
	if !errors.As(err, &file) {
		err = writeError(w.path, err)
	}
	w.err = err
	return err
}

// cause returns the message of the operating system without the path.
func cause(err error) string {
	var perr *fs.PathError
	var lerr *os.LinkError
	var remote interface{ Reason() string }
	switch {
	case errors.As(err, &perr):
		return perr.Err.Error()
	case errors.As(err, &lerr):
		return lerr.Err.Error()
	case errors.As(err, &remote):
		return remote.Reason()
	}
	return err.Error()
}

func writeError(path string, err error) *FileError {
	reason := cause(err)
	var access *remotefs.AccessError
	switch {
	case errors.As(err, new(*parts.MissingError)), errors.As(err, new(*remotefs.SchemeError)):
	case errors.As(err, &access) && access.Err == nil: // its reason is a whole sentence
	default:
		reason = "cannot be written: " + reason
	}
	return &FileError{Path: path, Reason: reason, Err: err}
}

// Rows returns the number of records that were written.
func (w *Writer) Rows() int64 { return w.rows }

// Flush writes buffered records to the file or the io.Writer. A JSON array and a
// Parquet file are complete only after Close.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buf.Flush(); err != nil {
		return w.fail(err)
	}
	return nil
}

// Close completes the file, syncs it and renames it to its name. If it fails, no
// file has been created. A second call does nothing.
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
		if err = w.file.Commit(); err != nil {
			err = w.fail(err)
		}
	}
	if err != nil {
		_ = w.file.Abort() // the first error is returned
	}
	return err
}

func (w *Writer) finish() error {
	if w.err != nil {
		return w.err
	}
	if err := w.enc.Close(); err != nil {
		return w.fail(err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if w.packed != nil {
		if err := w.packed.Close(); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// Abort discards the file; an older file of the name stays. After Close it does
// nothing.
func (w *Writer) Abort() {
	if w.done || w.file == nil {
		return
	}
	w.done = true
	_ = w.file.Abort() // leaves nothing behind
}

// compression is how a file is compressed; empty for one that is not.
type compression string

const (
	formatGzip  compression = "gzip"
	formatZstd  compression = "zstd"
	formatBzip2 compression = "bzip2"
	formatXZ    compression = "xz"
	formatLZ4   compression = "lz4"
	maxTable                = 128 << 20 // the maximum window of zstd in bytes, the limit of the zstd command
)

// compressionOf detects a compression by the first bytes of a file.
func compressionOf(head []byte) compression {
	for magic, c := range map[string]compression{
		"\x1f\x8b": formatGzip, "\x28\xb5\x2f\xfd": formatZstd, "BZh": formatBzip2, "\xfd7zXZ\x00": formatXZ, "\x04\x22\x4d\x18": formatLZ4,
	} {
		if bytes.HasPrefix(head, []byte(magic)) && (c != formatBzip2 || bytes.Contains(head, []byte("1AY&SY"))) {
			return c
		}
	}
	return ""
}

// compressionNamed returns the compression by a file's extension, and the name without it.
func compressionNamed(path string) (c compression, bare string) {
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".gz":
		return formatGzip, strings.TrimSuffix(path, ext)
	case ".zst", ".zstd":
		return formatZstd, strings.TrimSuffix(path, ext)
	}
	return "", path
}

// unpack decompresses a file and peeks at its beginning.
func (r *Reader) unpack(c compression, in *bufio.Reader) (*bufio.Reader, []byte, error) {
	invalid := func(err error) error {
		return &FileError{Path: r.path, Reason: fmt.Sprintf("is not a valid %s file", c), Err: err}
	}
	var plain io.Reader
	switch c {
	case formatGzip:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, invalid(err)
		}
		plain = z
	case formatZstd:
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxTable))
		if err != nil {
			return nil, nil, invalid(err)
		}
		r.closers = append(r.closers, z.IOReadCloser())
		plain = z
	default:
		return nil, nil, &FileError{Path: r.path, Reason: fmt.Sprintf("is compressed with %s: decompress it, or use gzip or zstd", c)}
	}
	plain = &decompressor{plain, c, r.path}
	buffered := bufio.NewReaderSize(plain, bufferSize)
	head, err := buffered.Peek(peekSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	return buffered, head, nil
}

// decompressor returns an error that names the file if the compressed data is damaged.
type decompressor struct {
	in   io.Reader
	by   compression
	path string
}

func (u *decompressor) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	reason := fmt.Sprintf("its %s data is damaged", u.by)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = fmt.Sprintf("its %s data ends before it is complete", u.by)
	}
	return n, &FileError{Path: u.path, Reason: reason, Err: err}
}

// pack returns a compressing writer; nil if the file is not compressed.
func pack(c compression, out io.Writer) (io.WriteCloser, error) {
	switch c {
	case formatGzip:
		return gzip.NewWriter(out), nil
	case formatZstd:
		return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	}
	return nil, nil
}

// MaxSpool is the maximum size in bytes of a temporary copy, for formats that are
// read from their end.
const MaxSpool = 8 << 30

// random returns the file for reading at any offset: the file itself, or a temporary copy.
func (r *Reader) random(in *bufio.Reader) (io.ReaderAt, int64, error) {
	if r.whole != nil {
		return r.whole, r.size, nil
	}
	f, err := r.temporary()
	if err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(f, io.LimitReader(in, MaxSpool+1))
	var file *FileError
	switch {
	case errors.As(err, &file):
		return nil, 0, err
	case err != nil:
		return nil, 0, fileError(r.path, err)
	case size > MaxSpool:
		return nil, 0, &FileError{Path: r.path, Reason: fmt.Sprintf("is larger than %d GB when decompressed", MaxSpool>>30)}
	}
	r.whole, r.size = f, size
	r.read.Store(0) // from here on, reads of the copy are counted
	return f, size, nil
}

// temporary returns a temporary file that is removed with the reader.
func (r *Reader) temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "qtype-*")
	if err != nil {
		return nil, TemporaryError(r.path, err)
	}
	r.closers = append(r.closers, &tempFile{f})
	_ = os.Remove(f.Name()) // if this works, not even a killed process leaves it behind
	return f, nil
}

// TemporaryError returns the error of a file whose temporary copy cannot be written.
func TemporaryError(path string, err error) *FileError {
	return &FileError{Path: path, Reason: "needs a temporary file: " + cause(err), Err: err}
}

// tempFile is a temporary file that is removed with its reader.
type tempFile struct{ *os.File }

// Close removes the file.
func (s *tempFile) Close() error {
	err := s.File.Close()
	if removed := os.Remove(s.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

package records

import (
	"context"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/parts"
)

// Codec reads and writes the files of a format. It is a part: the core has none.
type Codec struct {
	// Open reads what comes before the rows of a file. Its error is a *FileError.
	Open func(in *Input) (*Rows, error)
	// NewEncoder returns what writes a file of these columns.
	NewEncoder func(out io.Writer, columns []Column) (Encoder, error)
}

// Codecs are the formats that a program has as parts.
type Codecs map[Format]Codec

type codecsKey struct{}

// WithCodecs returns a context in which files of these formats, besides those of the core, can be read and written.
func WithCodecs(ctx context.Context, table Codecs) context.Context {
	return context.WithValue(ctx, codecsKey{}, table)
}

// Available returns a *parts.MissingError if the program neither reads nor writes a format.
func Available(ctx context.Context, format Format) error {
	if slices.Contains(Core(), format) {
		return nil
	}
	_, err := codecOf(ctx, format)
	return err
}

// codecOf returns the codec of a format that is not in the core.
func codecOf(ctx context.Context, format Format) (Codec, error) {
	table, _ := ctx.Value(codecsKey{}).(Codecs)
	c, found := table[format]
	if !found {
		return c, &parts.MissingError{Kind: parts.Records, Name: string(format)}
	}
	return c, nil
}

// Input is a file for a Codec.
type Input struct {
	io.ReaderAt        // the bytes
	Size        int64  // their number
	Path        string // for messages: without credentials
	reader      *Reader
}

// Reads reports whether the caller wants the values of a column.
func (in *Input) Reads(column string) bool { return in.reader.rest || in.reader.reads(column) }

// Metered returns a file, the input or a copy of it, whose reads are the progress of the Reader.
func (in *Input) Metered(file io.ReaderAt, size int64) io.ReaderAt {
	return &meterAt{file, size, &in.reader.read}
}

// Temporary returns a temporary file that is removed with the Reader.
func (in *Input) Temporary() (*os.File, error) { return in.reader.temporary() }

// meterAt counts the bytes that are read.
type meterAt struct {
	in   io.ReaderAt
	size int64
	read *atomic.Int64
}

// ReadAt reads from the file.
func (m *meterAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := m.in.ReadAt(p, off)
	m.read.Store(min(m.size, m.read.Load()+int64(n)))
	return n, err
}

// Rows are the rows of a file.
type Rows struct {
	Columns []string               // their names
	Total   int64                  // the number of rows
	Next    func() (Record, error) // returns the next row; io.EOF after the last
}

// startCodec opens a file of a format that is a part.
func (r *Reader) startCodec(c Codec, file io.ReaderAt, size int64) error {
	rows, err := c.Open(&Input{ReaderAt: file, Size: size, Path: r.path, reader: r})
	if err != nil {
		return err
	}
	r.columns, r.total, r.next = rows.Columns, rows.Total, rows.Next
	return nil
}

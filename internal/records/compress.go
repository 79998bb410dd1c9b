package records

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// compression is how a file is packed; empty for one that is not.
type compression string

const (
	formatGzip  compression = "gzip"
	formatZstd  compression = "zstd"
	formatBzip2 compression = "bzip2"
	formatXZ    compression = "xz"
	formatLZ4   compression = "lz4"
	maxTable                = 128 << 20 // the most bytes that zstd may look back, as its command has it
)

// compressionOf tells how a file is packed by how it begins.
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

// compressionNamed is how a file of that name is packed, and the name without the ending that says so.
func compressionNamed(path string) (c compression, bare string) {
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".gz":
		return formatGzip, strings.TrimSuffix(path, ext)
	case ".zst", ".zstd":
		return formatZstd, strings.TrimSuffix(path, ext)
	}
	return "", path
}

// unpack reads what is packed, and looks at its beginning.
func (r *Reader) unpack(c compression, in *bufio.Reader) (*bufio.Reader, []byte, error) {
	fault := func(err error) error {
		return &FileError{Path: r.path, Reason: fmt.Sprintf("is not a %s file that can be read", c), Err: err}
	}
	var plain io.Reader
	switch c {
	case formatGzip:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fault(err)
		}
		plain = z
	case formatZstd:
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxTable))
		if err != nil {
			return nil, nil, fault(err)
		}
		r.closers = append(r.closers, z.IOReadCloser())
		plain = z
	default:
		return nil, nil, &FileError{Path: r.path, Reason: fmt.Sprintf("is packed with %s: unpack it, or pack it with gzip or zstd", c)}
	}
	plain = &decompressor{plain, c, r.path}
	buffered := bufio.NewReaderSize(plain, bufferSize)
	head, err := buffered.Peek(peekSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	return buffered, head, nil
}

// decompressor names the file when its packing turns out to be damaged.
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

// pack makes a writer that packs; nil where nothing is to be packed.
func pack(c compression, out io.Writer) (io.WriteCloser, error) {
	switch c {
	case formatGzip:
		return gzip.NewWriter(out), nil
	case formatZstd:
		return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	}
	return nil, nil
}

// maxSpool is the most bytes that are put aside in a temporary file, for a
// format that is read from its end.
const maxSpool = 8 << 30

// random makes a file of the bytes that can be read at any place: the file
// itself, or a temporary one that nobody else sees.
func (r *Reader) random(in *bufio.Reader) (io.ReaderAt, int64, error) {
	if r.whole != nil {
		return r.whole, r.size, nil
	}
	f, err := os.CreateTemp("", "qtype-*")
	if err != nil {
		return nil, 0, &FileError{Path: r.path, Reason: "needs a temporary file: " + cause(err), Err: err}
	}
	r.closers = append(r.closers, &tempFile{f})
	_ = os.Remove(f.Name()) // where that works at once, not even a killed process leaves it
	size, err := io.Copy(f, io.LimitReader(in, maxSpool+1))
	var file *FileError
	switch {
	case errors.As(err, &file):
		return nil, 0, err
	case err != nil:
		return nil, 0, fileError(r.path, err)
	case size > maxSpool:
		return nil, 0, &FileError{Path: r.path, Reason: fmt.Sprintf("is larger than %d GB once it is unpacked and copied", maxSpool>>30)}
	}
	r.whole, r.size = f, size
	r.read.Store(0) // what counts from here on are reads of the copy
	return f, size, nil
}

// tempFile is a temporary file that ends with its reader.
type tempFile struct{ *os.File }

// Close removes the file.
func (s *tempFile) Close() error {
	err := s.File.Close()
	if removed := os.Remove(s.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

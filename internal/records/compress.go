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

// maxSpool is the maximum size in bytes of a temporary copy, for formats that are
// read from their end.
const maxSpool = 8 << 30

// random returns the file for reading at any offset: the file itself, or a temporary copy.
func (r *Reader) random(in *bufio.Reader) (io.ReaderAt, int64, error) {
	if r.whole != nil {
		return r.whole, r.size, nil
	}
	f, err := r.temporary()
	if err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(f, io.LimitReader(in, maxSpool+1))
	var file *FileError
	switch {
	case errors.As(err, &file):
		return nil, 0, err
	case err != nil:
		return nil, 0, fileError(r.path, err)
	case size > maxSpool:
		return nil, 0, &FileError{Path: r.path, Reason: fmt.Sprintf("is larger than %d GB when decompressed", maxSpool>>30)}
	}
	r.whole, r.size = f, size
	r.read.Store(0) // from here on, reads of the copy are counted
	return f, size, nil
}

// temporary returns a temporary file that is removed with the reader.
func (r *Reader) temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "qtype-*")
	if err != nil {
		return nil, &FileError{Path: r.path, Reason: "needs a temporary file: " + cause(err), Err: err}
	}
	r.closers = append(r.closers, &tempFile{f})
	_ = os.Remove(f.Name()) // if this works, not even a killed process leaves it behind
	return f, nil
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

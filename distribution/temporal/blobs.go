package temporal

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// maxInline is the size in bytes up to which values are parts of Temporal's histories;
// larger ones are blobs.
const maxInline = 8 << 10

// maxOutputs is the size in bytes of all outputs together that are not blobs.
const maxOutputs = 64 << 10

// blobs is the place in which a run and its workers exchange large values.
type blobs struct {
	base   string  // a folder, or an address
	sealer *sealer // nil for blobs that are not encrypted
	client remotefs.Client
}

// newBlobs returns the blobs of a configuration.
func newBlobs(cfg durable.Config) *blobs {
	return &blobs{base: cfg.Blobs, sealer: newSealer(cfg), client: remotefs.Client{Buckets: cfg.Buckets}}
}

// address returns the address of a blob.
func (b *blobs) address(name string) string {
	if _, remote := remotefs.Remote(b.base); remote {
		return strings.TrimSuffix(b.base, "/") + "/" + name
	}
	return filepath.Join(remotefs.Path(b.base), filepath.FromSlash(name))
}

// write stores a value. It replaces what has the name.
func (b *blobs) write(ctx context.Context, name string, value any) error {
	return b.store(ctx, name, value, false)
}

// store is write. A volatile value can be made again, so nothing waits until it is on a disk.
func (b *blobs) store(ctx context.Context, name string, value any, isVolatile bool) error {
	out, err := b.client.Create(ctx, b.address(name))
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	if file, ok := out.(interface{ Volatile() }); ok && isVolatile {
		file.Volatile()
	}
	if err := b.encode(out, name, value); err != nil {
		return errors.Join(fmt.Errorf("blobs: %w", err), out.Abort())
	}
	if err := out.Commit(); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// read reads a value that write has stored. The error matches fs.ErrNotExist if there is none.
func (b *blobs) read(ctx context.Context, name string, value any) (err error) {
	in, err := b.client.Open(ctx, b.address(name))
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := b.decode(in, name, value); err != nil {
		return fmt.Errorf("blobs: %s is not readable: %w", remotefs.Redacted(b.address(name)), err)
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// readPlace reads a value that is in a place.
func (b *blobs) readPlace(ctx context.Context, at place, value any) error {
	if at.Inline != nil {
		return decode(at.Inline, value)
	}
	return b.read(ctx, at.Blob, value)
}

// writePlace stores a value, a large one under a name.
func (b *blobs) writePlace(ctx context.Context, name string, value any) (place, error) {
	data, err := encode(value)
	if err != nil || len(data) <= maxInline {
		return place{Inline: data}, err
	}
	return place{Blob: name}, b.write(ctx, name, value)
}

// encode writes a value, encrypted if there is a key.
func (b *blobs) encode(out io.Writer, name string, value any) error {
	if b.sealer == nil {
		return gob.NewEncoder(out).Encode(value)
	}
	data, err := encode(value)
	if err == nil {
		data, err = b.sealer.seal(data, name)
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// decode is the inverse of encode.
func (b *blobs) decode(in io.Reader, name string, value any) error {
	if b.sealer == nil {
		return gob.NewDecoder(in).Decode(value)
	}
	data, err := io.ReadAll(in)
	if err == nil {
		data, err = b.sealer.open(data, name)
	}
	if err != nil {
		return err
	}
	return decode(data, value)
}

// remove deletes the blobs whose names begin with a run, or another folder, from a file system;
// buckets have lifecycle rules for it.
func (b *blobs) remove(folder string) error {
	if _, remote := remotefs.Remote(b.base); remote {
		return nil
	}
	if err := os.RemoveAll(b.address(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// encode returns a value as write stores it.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(value)
	return b.Bytes(), err
}

// decode reads what encode has returned.
func decode(data []byte, value any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(value)
}

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
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// maxInline is the size in bytes up to which values are parts of Temporal's histories;
// larger ones are blobs.
const maxInline = 8 << 10

// maxKept is the size in bytes up to which a request or an answer is a part of the state of a workflow, which has many; of a
// larger one it has the name of a blob.
const maxKept = 1 << 10

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
	if !b.isLocal() {
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
	if err := check(name); err != nil {
		return err
	}
	out, err := b.client.Create(ctx, b.address(name))
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	if file, ok := out.(interface{ Volatile() }); ok && isVolatile {
		file.Volatile()
	}
	return commit(out, b.encode(out, name, value))
}

// commit ends an upload that was written with err.
func commit(out remotefs.Upload, err error) error {
	if err != nil {
		return errors.Join(fmt.Errorf("blobs: %w", err), out.Abort())
	}
	if err := out.Commit(); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// put stores bytes as they are.
func (b *blobs) put(ctx context.Context, name string, data []byte) error {
	out, err := b.client.Create(ctx, b.address(name))
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return commit(out, err)
}

// isLocal reports whether the blobs are in a folder.
func (b *blobs) isLocal() bool {
	_, remote := remotefs.Remote(b.base)
	return !remote
}

// createFile creates a file in a folder for blobs, to which the caller appends. It is found after the end of the computer when syncFolder has
// ended.
func (b *blobs) createFile(name string) (*os.File, error) {
	path := b.address(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666) //nolint:gosec // as other blobs, with the permissions of the umask
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	return file, nil
}

// list returns the names in a folder of blobs, in alphabetical order.
func (b *blobs) list(ctx context.Context, folder string) (names []string, err error) {
	prefix := b.address(folder)
	if !b.isLocal() {
		prefix += "/"
		for object, err := range b.client.List(ctx, prefix) {
			if err != nil {
				return nil, fmt.Errorf("blobs: %w", err)
			}
			names = append(names, strings.TrimPrefix(object.Address, prefix))
		}
		slices.Sort(names)
		return names, nil
	}
	files, err := os.ReadDir(prefix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, nil
}

// read reads a value that write has stored. The error matches fs.ErrNotExist if there is none.
func (b *blobs) read(ctx context.Context, name string, value any) (err error) {
	if err := check(name); err != nil {
		return err
	}
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

// check returns an error for a name that leaves the folder: Temporal has names, which others could have written.
func check(name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("blobs: %q is not the name of a blob", name)
	}
	return nil
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
	if !b.isLocal() {
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

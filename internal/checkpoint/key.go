package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/qtype-dev/qtype/internal/trust"
)

const (
	keyFile = "journal.key"
	keySize = 32 // bytes
)

// UserKey returns the key of the user for journals, which is in the state folder; it is made if there is
// none. It is nil where a key cannot be stored. A key that others can read is an error.
func UserKey() ([]byte, error) {
	folder := trust.StateFolder()
	if folder == "" {
		return nil, nil
	}
	path := filepath.Join(folder, keyFile)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(folder, path); err != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be written has no key
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil
		}
		return nil, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, wrapError(path, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("has mode %04o, so that others can read it: set it to 0600", info.Mode().Perm())}
	}
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err == nil && len(key) != keySize {
		err = &Error{Reason: fmt.Sprintf("is not a key of %d bytes; delete it to make another one", keySize)}
	}
	if err != nil {
		return nil, wrapError(path, err)
	}
	return key, nil
}

// makeKey makes a key. If another process does the same, its key stays.
func makeKey(folder, path string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, keyFile+"-*") // has mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // has another name now
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never returns an error
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(f.Name(), path) // a file system without links
	}
	return nil
}

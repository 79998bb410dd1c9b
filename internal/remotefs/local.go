package remotefs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// openLocal opens a file of this machine; a pipe or a device can be read, too.
func openLocal(address, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, localError(address, err)
	}
	if info.IsDir() {
		return nil, &AccessError{Address: address, Why: "is a directory, not a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, localError(address, err)
	}
	return f, nil
}

// localError puts what the operating system said in a user's words.
func localError(address string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotFoundError{Address: address}
	case errors.Is(err, fs.ErrPermission):
		return &AccessError{Address: address, Why: "permission denied", Err: err}
	case errors.As(err, &path):
		return &AccessError{Address: address, Why: path.Err.Error(), Err: err}
	case errors.As(err, &link):
		return &AccessError{Address: address, Why: link.Err.Error(), Err: err}
	}
	return &AccessError{Address: address, Why: err.Error(), Err: err}
}

// localUpload is a file under a temporary name beside its final one.
type localUpload struct {
	address string
	out     *os.File
	final   string
	plain   bool // no regular file: a pipe or a device, written in place
	done    bool
}

// createLocal makes the folder and the temporary file. A link stays and its
// target is replaced; a file keeps its mode.
func createLocal(address, path string) (Upload, error) {
	final := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		final = real
	}
	mode := fs.FileMode(0o666) // less what the umask takes
	info, err := os.Stat(final)
	switch {
	case err == nil && info.IsDir():
		return nil, &AccessError{Address: address, Why: "is a directory, not a file"}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(final, os.O_WRONLY, 0)
		if err != nil {
			return nil, localError(address, err)
		}
		return &localUpload{address: address, out: f, final: final, plain: true}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if err := writable(final); err != nil {
			return nil, localError(address, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return nil, localError(address, err)
	}
	f, err := os.OpenFile(temporary(final), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, localError(address, err)
	}
	return &localUpload{address: address, out: f, final: final}, nil
}

// writable refuses to replace a file that its owner has made read-only: a
// rename would not ask.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	return f.Close()
}

// temporary is a free name beside path, hidden from listings.
func temporary(path string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails since Go 1.24
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(b[:])+".tmp")
}

func (u *localUpload) Write(p []byte) (int, error) {
	n, err := u.out.Write(p)
	if err != nil {
		return n, localError(u.address, err)
	}
	return n, nil
}

// Commit makes the bytes durable, then visible.
func (u *localUpload) Commit() error {
	if u.done {
		return nil
	}
	u.done = true
	if err := u.commit(); err != nil {
		u.forget()
		return localError(u.address, err)
	}
	return nil
}

func (u *localUpload) commit() error {
	if u.plain {
		return u.out.Close()
	}
	if err := u.out.Sync(); err != nil {
		return err
	}
	if err := u.out.Close(); err != nil {
		return err
	}
	if err := os.Rename(u.out.Name(), u.final); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(u.final)); err == nil {
		_ = dir.Sync()  // not every file system can; the file itself is safe
		_ = dir.Close() // only synced
	}
	return nil
}

func (u *localUpload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	u.forget()
	return nil
}

// forget takes the temporary file away.
func (u *localUpload) forget() {
	_ = u.out.Close() // may be closed already
	if !u.plain {
		_ = os.Remove(u.out.Name()) // what cannot be removed is a hidden file, no harm
	}
}

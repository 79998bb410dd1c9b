package remotefs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// openLocal opens a local file, pipe or device.
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

// localError converts an error of the operating system.
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

// localUpload is a file under a temporary name next to its final one.
type localUpload struct {
	address string
	out     *os.File
	final   string
	mode    fs.FileMode     // of the final file
	noted   *TemporaryFiles // has the file; may be nil
	inPlace bool            // a pipe or a device
	done    bool

	volatile bool // see Volatile
}

// createLocal creates missing directories and the temporary file. For a link it
// replaces the target; an existing file keeps its mode.
func createLocal(ctx context.Context, address, path string) (Upload, error) {
	final := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		final = real
	}
	mode := fs.FileMode(0o666) &^ umask()
	info, err := os.Stat(final)
	switch {
	case err == nil && info.IsDir():
		return nil, &AccessError{Address: address, Why: "is a directory, not a file"}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(final, os.O_WRONLY, 0)
		if err != nil {
			return nil, localError(address, err)
		}
		return &localUpload{address: address, out: f, final: final, inPlace: true}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if err := checkWritable(final); err != nil {
			return nil, localError(address, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return nil, localError(address, err)
	}
	noted := temporaryFilesOf(ctx)
	removeAbandoned(final)
	f, err := createTemporary(noted, final)
	if err != nil {
		return nil, localError(address, err)
	}
	return &localUpload{address: address, out: f, final: final, mode: mode, noted: noted}, nil
}

// createTemporary creates the locked temporary file of a file, which only the user can read
// from its beginning.
func createTemporary(noted *TemporaryFiles, final string) (*os.File, error) {
	for {
		f, err := noted.create(temporaryName(final))
		if err != nil {
			return nil, err
		}
		if lock(f) {
			return f, nil
		}
		noted.done(f.Name())
		_ = f.Close() // another program has just removed it as abandoned
	}
}

// checkWritable returns an error for a read-only file, which a rename would replace.
func checkWritable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	return f.Close()
}

// temporaryName returns an unused hidden name in the directory of path.
func temporaryName(path string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(b[:])+".tmp")
}

func (u *localUpload) Write(p []byte) (int, error) {
	n, err := u.out.Write(p)
	if err != nil {
		return n, localError(u.address, err)
	}
	return n, nil
}

// Volatile lets Commit not wait for the disk: after a failure of the computer, unlike one of the
// program, the file may be damaged or missing.
func (u *localUpload) Volatile() { u.volatile = true }

// Commit syncs the file and moves it to its final name.
func (u *localUpload) Commit() error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.noted.done(u.out.Name())
	if err := u.commit(); err != nil {
		u.discard()
		return localError(u.address, err)
	}
	return nil
}

func (u *localUpload) commit() error {
	if u.inPlace {
		return u.out.Close()
	}
	_ = u.out.Chmod(u.mode) // not supported by every file system
	if !u.volatile {
		if err := u.out.Sync(); err != nil {
			return err
		}
	}
	if err := u.out.Close(); err != nil {
		return err
	}
	if err := os.Rename(u.out.Name(), u.final); err != nil {
		return err
	}
	if u.volatile {
		return nil
	}
	if dir, err := os.Open(filepath.Dir(u.final)); err == nil {
		_ = dir.Sync()  // not supported by every file system; the file itself is synced
		_ = dir.Close() // sync only
	}
	return nil
}

func (u *localUpload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.noted.done(u.out.Name())
	u.discard()
	return nil
}

// discard removes the temporary file.
func (u *localUpload) discard() {
	_ = u.out.Close() // may be closed already
	if !u.inPlace {
		_ = os.Remove(u.out.Name()) // a leftover is only a hidden file
	}
}

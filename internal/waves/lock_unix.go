//go:build unix

package waves

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks a file, which it makes, against other processes until it is closed. A file system without locks does not protect it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: another process uses the file: each server needs its own", path), f.Close())
	}
	return f, nil
}

//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// lock holds a file against other processes until it is closed.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Error{Reason: ErrBusy.Error(), Err: ErrBusy}
	}
	return nil // a file system without locks has none to break
}

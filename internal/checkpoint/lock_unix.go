//go:build unix

package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// lock locks the file against other processes until it is closed.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Error{Reason: ErrBusy.Error(), Err: ErrBusy}
	}
	return nil // a file system without locks: nothing protects the file there
}

// removeLocked removes a file while it is locked.
func removeLocked(f *os.File) error { return os.Remove(f.Name()) }

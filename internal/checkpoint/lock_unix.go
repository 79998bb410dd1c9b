//go:build unix

package checkpoint

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lock locks the file against other processes until it is closed.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Error{Reason: ErrBusy.Error(), Err: ErrBusy}
	}
	// A file system without locks: nothing protects the file there. The second lock is for writer: the
	// first one does not have the process.
	_ = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart})
	return nil
}

// writer returns the id of the process that has locked the file; zero or less if there is none, or it
// runs elsewhere.
func writer(f *os.File) int {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil || l.Type == syscall.F_UNLCK {
		return 0
	}
	return int(l.Pid)
}

// removeLocked removes a file while it is locked.
func removeLocked(f *os.File) error { return os.Remove(f.Name()) }

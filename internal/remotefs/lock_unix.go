//go:build unix

package remotefs

import (
	"errors"
	"os"
	"syscall"
)

// lock marks a new file as being written until it is closed. It reports whether no other
// program removes it as abandoned at the same time.
func lock(f *os.File) bool {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return true // locks and removals are then not noticed
	}
	data, ok := info.Sys().(*syscall.Stat_t)
	return !ok || data.Nlink > 0
}

// removeUnlocked removes a file that no program writes. Nothing is removed on file systems
// without locks.
func removeUnlocked(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // it belongs to another user
	}
	defer func() { _ = f.Close() }()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.Remove(path) // a leftover is only a hidden file
	}
}

// IsWritten reports whether a program writes a temporary file of this package: the program
// holds its lock.
func IsWritten(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // which ends the lock
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

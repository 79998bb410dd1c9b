//go:build unix

package auditlog

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until no other process appends to the file, and locks it until it is closed:
// isTorn must not see a part of a line. File systems without locks do nothing.
func lock(f *os.File) {
	for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), syscall.EINTR) {
	}
}

//go:build !unix

package remotefs

import (
	"os"
	"runtime"
)

// lock returns true: no other program removes a file that is open.
func lock(*os.File) bool { return true }

// removeUnlocked removes a file that no program writes: Windows refuses to remove one that is
// open.
func removeUnlocked(path string) {
	if runtime.GOOS == "windows" {
		_ = os.Remove(path) // a leftover is only a hidden file
	}
}

// IsWritten returns false: what a program writes cannot be removed on Windows.
func IsWritten(string) bool { return false }

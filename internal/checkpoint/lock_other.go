//go:build !unix

package checkpoint

import "os"

// lock does nothing on systems without flock.
func lock(*os.File) error { return nil }

// writer returns 0: without locks, no process is known to have one.
func writer(*os.File) int { return 0 }

// removeLocked removes a file, which must not be open there.
func removeLocked(f *os.File) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Remove(f.Name())
}

//go:build !unix

package waves

import "os"

// lockFile opens a file, which it makes. Without flock it is not locked.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

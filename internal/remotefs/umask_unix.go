//go:build unix

package remotefs

import (
	"io/fs"
	"sync"
	"syscall"
)

// umask returns the mode bits that new files of this process do not have. The system reports
// them only when they are set: for an instant new files are private.
var umask = sync.OnceValue(func() fs.FileMode {
	bits := syscall.Umask(0o077)
	syscall.Umask(bits)
	return fs.FileMode(bits)
})

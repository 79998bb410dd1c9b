//go:build !unix

package remotefs

import "io/fs"

// umask returns no bits.
func umask() fs.FileMode { return 0 }

//go:build !unix

package auditlog

import "os"

// lock does nothing on systems without flock.
func lock(*os.File) {}

//go:build !linux

package documents

import (
	"io/fs"
	"time"
)

// changedTime returns the time of the last change of the content, because not all systems
// have another one.
func changedTime(info fs.FileInfo) time.Time { return info.ModTime() }

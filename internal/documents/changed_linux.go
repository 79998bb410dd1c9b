package documents

import (
	"io/fs"
	"syscall"
	"time"
)

// changedTime returns the time that SimpleDirectoryReader calls the creation of a file:
// that of the last change of its attributes.
func changedTime(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}

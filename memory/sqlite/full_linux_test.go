package sqlite_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestDiskFull: a disk that is really full.
func TestDiskFull(t *testing.T) {
	folder, limit := limited(t, 512<<10)
	s := open(t, filepath.Join(folder, "memory.db"))
	defer func() { must(t, s.Close()) }()
	storetest.RunFull(t, s, limit)
}

// limited is a folder with room for so many bytes, which limit changes. Only root may make one.
func limited(t *testing.T, bytes int) (folder string, limit func(bytes int)) {
	t.Helper()
	folder = t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		t.Skip("no folder of limited size can be mounted: ", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	return folder, func(bytes int) {
		must(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", bytes)))
	}
}

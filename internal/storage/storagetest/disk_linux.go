package storagetest

import (
	"fmt"
	"syscall"
	"testing"
)

// SmallDisk mounts a temporary directory with a size in bytes, which resize
// changes. The test is skipped where mounting is not allowed.
func SmallDisk(t *testing.T, size int) (dir string, resize func(size int)) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		t.Skip("cannot mount a directory of limited size: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size int) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", size)); err != nil {
			t.Fatal(err)
		}
	}
}

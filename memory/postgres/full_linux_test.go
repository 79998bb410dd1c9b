package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestDiskFull: a disk that is really full, under the tables of the store alone.
func TestDiskFull(t *testing.T) {
	server := shared.Get(t)
	folder, limit := limited(t, 1<<20)
	info, err := os.Stat(server.Folder)
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	must(t, os.Chown(folder, int(owner.Uid), int(owner.Gid)))
	for up := filepath.Dir(folder); up != "/"; up = filepath.Dir(up) { // the server must get there
		if info, err := os.Stat(up); err == nil && info.Mode().Perm()&0o001 == 0 {
			must(t, os.Chmod(up, info.Mode().Perm()|0o001))
		}
	}
	address := place(t, server)
	sql(t, address, "CREATE TABLESPACE small LOCATION '"+folder+"'")
	s := open(t, address+"&default_tablespace=small")
	storetest.RunFull(t, s, limit)
	must(t, s.Close())
	sql(t, address, "DROP TABLE %sformat, %ssessions, %sentries, %sevents, %snamed")
	sql(t, address, "DROP TABLESPACE small")
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

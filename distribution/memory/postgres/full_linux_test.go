package postgres_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestApply_DiskFull fills a real disk that holds only the tables of the store.
func TestApply_DiskFull(t *testing.T) {
	server := shared.Get(t)
	dir, resize := storagetest.SmallDisk(t, 1<<20)
	info, err := os.Stat(server.Folder)
	testkit.Must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	testkit.Must(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	for up := filepath.Dir(dir); up != "/"; up = filepath.Dir(up) { // the server needs access
		if info, err := os.Stat(up); err == nil && info.Mode().Perm()&0o001 == 0 {
			testkit.Must(t, os.Chmod(up, info.Mode().Perm()|0o001))
		}
	}
	address := newAddress(t, server)
	execSQL(t, address, "CREATE TABLESPACE small LOCATION '"+dir+"'")
	s := open(t, address+"&default_tablespace=small")
	storetest.RunFull(t, s, resize)
	testkit.Must(t, s.Close())
	execSQL(t, address, "DROP TABLE %sformat, %ssessions, %sentries, %sevents, %snamed")
	execSQL(t, address, "DROP TABLESPACE small")
}

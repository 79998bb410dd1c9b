package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestApply_DiskFullMount fills a real disk.
func TestApply_DiskFullMount(t *testing.T) {
	dir, resize := storagetest.SmallDisk(t, 512<<10)
	s := open(t, filepath.Join(dir, "memory.db"))
	defer func() { testkit.Must(t, s.Close()) }()
	storetest.RunFull(t, s, resize)
}

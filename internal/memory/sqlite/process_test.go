package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestMain(m *testing.M) {
	storetest.WriterMain(func(path string) (store.Store, error) { return sqlite.Open(path) })
	goleak.VerifyTestMain(m)
}

func TestProcesses(t *testing.T) {
	storetest.RunProcesses(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "memory.db") },
		func(t *testing.T, path string) store.Store { return open(t, path) })
}

func TestMigration(t *testing.T) {
	storetest.RunMigration(t, func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "memory.db")
		sqlExec(t, path, firstVersion)
		return path
	}, func(t *testing.T, path string) store.Store { return open(t, path) })
}

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store {
		return open(t, filepath.Join(dir, "deep", "memory.db"))
	})
}

package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/sqlite"
)

func TestRemove(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := memory.Key{Memory: "m", Session: "s"}
	if err := s.Apply(t.Context(), key, memory.Change{Next: 7}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), key, 6); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("another version: %v", err)
	}
	if err := s.Remove(t.Context(), key, 7); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), key, 7); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("deleted session: %v", err)
	}
}

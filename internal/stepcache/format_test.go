package stepcache_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestStore_DiscardsFormat1 opens a cache that version 1 of the format has. Its
// results are discarded with one warning, and the cache can be used.
func TestStore_DiscardsFormat1(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "v1.cache.db"))
	testkit.Must(t, err)
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, stepcache.FileName), old, 0o600))
	var warnings []string
	s := stepcache.Open(folder, func(line string) { warnings = append(warnings, line) })
	stats, err := s.Stats(t.Context())
	testkit.Must(t, err)
	if len(stats) != 0 {
		t.Errorf("entries are left: %+v", stats)
	}
	want := "cache " + s.Path() + ": discarded the results of an older version of qtype (2); the steps compute them again"
	if got := strings.Join(warnings, "\n"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	put(t, s, step, "k", []byte("new"), stepcache.Policy{MaxBytes: 100})
	testkit.Must(t, s.Close())
	s = stepcache.Open(folder, func(line string) { t.Errorf("warned again: %s", line) })
	assertEqual(t, "after the change", get(t, s, step, "k", stepcache.Policy{}), "new")
	testkit.Must(t, s.Close())
}

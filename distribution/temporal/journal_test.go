package temporal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
)

// TestJournal: the entries of all attempts are read, in one file for each, encrypted or not; what was torn by the end of a computer is
// ignored, what was modified or moved is an error if it is encrypted.
func TestJournal(t *testing.T) {
	for name, cfg := range map[string]durable.Config{"plain": {}, "encrypted": {Keys: []encrypted.Key{key(t, 1)}}} {
		t.Run(name, func(t *testing.T) {
			cfg.Blobs = t.TempDir()
			b := newBlobs(cfg)
			for attempt := range 2 {
				j := newJournal(t.Context(), b, "run/calls/0/0")
				var group sync.WaitGroup
				for i := range 20 {
					group.Go(func() {
						if err := j.add(entry{Key: fmt.Sprintf("%d-%02d", attempt, i), Result: []byte("secret")}); err != nil {
							t.Error(err)
						}
						if err := j.sync(); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				j.close()
				if j.add(entry{}) == nil {
					t.Error("a closed journal takes an entry")
				}
			}
			read := func() (found []string, err error) {
				err = b.readJournals(t.Context(), "run/calls/0/0", func(e *entry) { found = append(found, e.Key+string(e.Result)) })
				slices.Sort(found)
				return found, err
			}
			files, _ := filepath.Glob(filepath.Join(cfg.Blobs, "run/calls/0/0/*"))
			found, err := read()
			if err != nil || len(found) != 40 || found[0] != "0-00secret" || len(files) != 2 {
				t.Fatalf("%d files, %d entries, %v", len(files), len(found), err)
			}
			text, err := os.ReadFile(files[1])
			if err != nil || strings.Contains(string(text), "secret") == (name == "encrypted") {
				t.Errorf("the file is not %s: %v", name, err)
			}
			write := func(file string, data []byte) {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(files[1], text[:len(text)-1])
			if found, err := read(); err != nil || len(found) != 39 {
				t.Errorf("a torn file: %d entries, %v", len(found), err)
			}
			write(files[1]+"-moved", text)
			if _, err := read(); (err != nil) != (name == "encrypted") {
				t.Errorf("a moved file: %v", err)
			}
		})
	}
}

package remotefs

import (
	"os"
	"path/filepath"
	"strings"
)

// removeAbandoned removes the temporary files of a local file whose programs were killed. A
// program locks the file that it writes.
func removeAbandoned(final string) {
	dir, base := filepath.Split(final)
	if dir == "" {
		dir = "."
	}
	entries, _ := os.ReadDir(dir) // a folder that cannot be listed is left alone
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		id, temporary := strings.CutSuffix(rest, ".tmp")
		if ok && temporary && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" && e.Type().IsRegular() {
			removeUnlocked(filepath.Join(dir, e.Name()))
		}
	}
}

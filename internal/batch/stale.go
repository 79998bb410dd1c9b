package batch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// staleTempFiles returns the incomplete outputs and files of failed rows of runs that were
// killed, which have hidden names. Only once this run has the journal is it known that
// those runs have ended.
func (cfg *Config) staleTempFiles() []string {
	if cfg.Output == "" || cfg.InputFile == "" {
		return nil
	}
	stale := tempFilesOf(cfg.Output)
	if cfg.ErrorFile != "" {
		stale = append(stale, tempFilesOf(cfg.ErrorFile)...)
	}
	return stale
}

// tempFilesOf returns the temporary files of a local file.
func tempFilesOf(address string) []string {
	final := remotefs.Path(address)
	if real, err := filepath.EvalSymlinks(final); err == nil {
		final = real
	}
	dir, base := filepath.Split(final)
	if dir == "" {
		dir = "."
	}
	entries, _ := os.ReadDir(dir) // a folder that cannot be listed is left alone
	var stale []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		id, temporary := strings.CutSuffix(rest, ".tmp")
		if ok && temporary && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" && e.Type().IsRegular() {
			stale = append(stale, filepath.Join(dir, e.Name()))
		}
	}
	return stale
}

// remove removes files; one that cannot be removed does no harm.
func remove(paths []string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
}

package subprocess

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Find returns the file of a program. It looks up a name in the directories of path,
// which has the form of PATH; a relative path is relative to base.
func Find(name, base, path string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("invalid program name %q", name)
	case !strings.ContainsAny(name, `/\`):
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue // never run a program of the current directory by its name
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
		return "", fmt.Errorf("program %q not found in PATH", name)
	case !filepath.IsAbs(name):
		name = filepath.Join(base, filepath.FromSlash(name))
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath(full)
	switch info, statErr := os.Stat(full); {
	case err == nil:
		return found, nil
	case statErr != nil:
		return "", fmt.Errorf("program %s not found", name)
	case info.Mode()&fs.ModeType != 0:
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	return "", fmt.Errorf("%s is not executable", name)
}

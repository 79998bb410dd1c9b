package subprocess

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Find is the file of a program. A name is looked up in the folders of path (in
// the form of PATH), a relative path lies below folder.
func Find(name, folder, path string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%q is not a program", name)
	case !strings.ContainsAny(name, `/\`):
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue // a program of the current folder is none that was asked for
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
		return "", fmt.Errorf("there is not a program %q in PATH", name)
	case !filepath.IsAbs(name):
		name = filepath.Join(folder, filepath.FromSlash(name))
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
		return "", fmt.Errorf("there is not a program %s", name)
	case info.Mode()&fs.ModeType != 0:
		return "", fmt.Errorf("%s is no file", name)
	}
	return "", fmt.Errorf("%s cannot be executed", name)
}

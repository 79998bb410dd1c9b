package remotefs

import (
	"os"
	"path/filepath"
)

// IsSame reports whether two paths or URLs lead to the same file, also through links. An empty path is none.
func IsSame(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(Path(a))
	if err != nil { // a URL, or a file that does not exist yet: compare the names
		return a == b || absolute(a) == absolute(b)
	}
	two, err := os.Stat(Path(b))
	return err == nil && one.Mode().IsRegular() && os.SameFile(one, two)
}

// absolute returns the whole path of a local file, and a URL as it is.
func absolute(path string) string {
	if _, remote := Remote(path); remote {
		return path
	}
	if abs, err := filepath.Abs(Path(path)); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

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
		return a == b || filepath.Clean(Path(a)) == filepath.Clean(Path(b))
	}
	two, err := os.Stat(Path(b))
	return err == nil && one.Mode().IsRegular() && os.SameFile(one, two)
}

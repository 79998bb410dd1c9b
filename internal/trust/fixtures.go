package trust

import (
	"os"
	"path"
	"path/filepath"
)

// WithFixtures returns the policy with a folder in which all files of the document are.
func (p *Policy) WithFixtures(folder string) *Policy {
	made := &Policy{}
	if p != nil {
		*made = *p
	}
	made.Fixtures = folder
	return made
}

// Place returns where a file is that the document names by a path or an address. Without
// fixtures that is the name itself. With them it is below their folder: a path of the working
// directory at the same place there, another path and an address after their root.
func (p *Policy) Place(name string) string {
	if p == nil || p.Fixtures == "" {
		return name
	}
	rest := localPath(name)
	if !IsAddress(name) && filepath.IsAbs(rest) {
		if here, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(here, rest); err == nil && filepath.IsLocal(rel) {
				rest = rel
			}
		}
	}
	rest = rest[len(filepath.VolumeName(rest)):]
	return filepath.Join(p.Fixtures, filepath.FromSlash(path.Clean("/"+filepath.ToSlash(rest)))) // without ..
}

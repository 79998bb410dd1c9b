package containment

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// mount is a file or a folder that a program can reach at its own path.
type mount struct {
	path     string
	writable bool
}

// mounts returns what a program can reach in addition to the system, sorted, a folder
// before its contents: the file of the program, folders, and what the document declares.
func (c *Container) mounts(program string, folders []string) []mount {
	writable := map[string]bool{}
	add := func(to bool, paths ...string) {
		for _, path := range paths {
			writable[path] = writable[path] || to
		}
	}
	if filepath.IsAbs(program) {
		add(false, program)
		if target, err := filepath.EvalSymlinks(program); err == nil {
			add(false, target)
		}
	}
	add(false, folders...)
	add(false, c.read...)
	add(true, c.write...)
	var all []mount
	for _, path := range slices.Sorted(maps.Keys(writable)) {
		all = append(all, mount{path, writable[path]})
	}
	return all
}

// hidden returns the .env files of folders that the document does not declare.
func (c *Container) hidden(folders []string) []string {
	var all []string
	for _, folder := range folders {
		file := filepath.Join(folder, ".env")
		declared := slices.Contains(c.read, file) || slices.Contains(c.write, file) || slices.Contains(c.read, folder) || slices.Contains(c.write, folder)
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && !declared && !slices.Contains(all, file) {
			all = append(all, file)
		}
	}
	return all
}

// workingFolder returns the working folder of a program: that of this process if the
// program can reach it, otherwise /tmp.
func workingFolder(reached []mount) string {
	here, err := os.Getwd()
	if err != nil {
		return "/tmp"
	}
	if slices.ContainsFunc(reached, func(m mount) bool { return isBelow(m.path, here) }) {
		return here
	}
	return "/tmp"
}

// isBelow reports whether an absolute path is a folder or below it.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// Package starter writes new projects: an application that validates and runs at
// once and offline, tests, rows or files to try it with, a page that tells
// how, and a workflow that checks and tests it on every push.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The files of templates/common belong to every project. Names that begin with a
// dot are kept without it, so that they mean nothing where they are kept.
//
//go:embed templates
var templates embed.FS

// The copies of the schemas that the first lines of documents and of files of
// tests name.
const (
	schemaFile = "qtype.schema.json"
	testsFile  = "qtype-test.schema.json"
)

// Schemas are the JSON schemas that a project has for its editors.
type Schemas struct {
	Document string // of documents
	Tests    string // of files of tests
}

// Names lists the kinds of projects there are; the first is the usual one.
func Names() []string { return []string{"chat", "batch", "agent"} }

// files are the files of a project by their paths, with slashes.
func files(name string, schemas Schemas) (map[string][]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("there is no template %q; there are %s", name, strings.Join(Names(), ", "))
	}
	files := map[string][]byte{schemaFile: []byte(schemas.Document), testsFile: []byte(schemas.Tests)}
	for _, folder := range []string{"common", name} {
		root := path.Join("templates", folder)
		err := fs.WalkDir(templates, root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := templates.ReadFile(p)
			files[restoreDotfiles(strings.TrimPrefix(p, root+"/"))] = content
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// restoreDotfiles gives those names their dot back that have one in a project.
func restoreDotfiles(p string) string {
	first, _, _ := strings.Cut(p, "/")
	if slices.Contains([]string{"gitignore", "env.example", "github"}, first) {
		return "." + p
	}
	return p
}

// ExistsError says that a project would have overwritten something. Nothing was written.
type ExistsError struct {
	Paths []string // what is there already, in alphabetical order
}

// Error names what is there.
func (e *ExistsError) Error() string {
	verb := "exists"
	if len(e.Paths) > 1 {
		verb = "exist"
	}
	return fmt.Sprintf("%s %s already: nothing is overwritten, nothing was written", strings.Join(e.Paths, ", "), verb)
}

// Write makes a project in a folder, which it creates where it is missing, and
// returns the paths that it wrote, in alphabetical order. Where one of the files
// is there already it writes nothing and returns an *ExistsError.
func Write(folder, name string, schemas Schemas) ([]string, error) {
	made, err := files(name, schemas)
	if err != nil {
		return nil, err
	}
	var paths, there []string
	for p := range made {
		full := filepath.Join(folder, filepath.FromSlash(p))
		paths = append(paths, p)
		if _, err := os.Lstat(full); err == nil {
			there = append(there, full)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	slices.Sort(paths)
	if len(there) > 0 {
		slices.Sort(there)
		return nil, &ExistsError{Paths: there}
	}
	written := make([]string, len(paths))
	for i, p := range paths {
		written[i] = filepath.Join(folder, filepath.FromSlash(p))
		if err := create(written[i], made[p]); err != nil {
			return written[:i], err
		}
	}
	return written, nil
}

// create writes a file that must not be there yet.
func create(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // ordinary files, with the permissions of the umask
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

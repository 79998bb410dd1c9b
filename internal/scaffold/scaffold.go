// Package scaffold creates projects: an application that validates and runs
// offline, tests, sample input, a README, and a workflow that checks and tests it
// on every push.
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

// The files of templates/common belong to every project. Dotfiles are embedded
// without their dot, so that they have no effect in this repository.
//
//go:embed templates
var templates embed.FS

// File names of the schemas that documents and test files refer to in their first
// lines.
const (
	schemaFile = "qtype.schema.json"
	testsFile  = "qtype-test.schema.json"
)

// Schemas are the JSON schemas to write to the project, for editors.
type Schemas struct {
	Document string // of documents
	Tests    string // of test files
}

// Names returns the names of the templates; the first is the default.
func Names() []string { return []string{"chat", "batch", "rag", "agent"} }

// files returns the files of a project by path, with slashes.
func files(name string, schemas Schemas) (map[string][]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown template %q; available: %s", name, strings.Join(Names(), ", "))
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

// restoreDotfiles returns the path in the project of an embedded file.
func restoreDotfiles(p string) string {
	first, _, _ := strings.Cut(p, "/")
	if slices.Contains([]string{"gitignore", "env.example", "github"}, first) {
		return "." + p
	}
	return p
}

// ExistsError is returned if a project would overwrite files. Nothing was written.
type ExistsError struct {
	Paths []string // the existing files, sorted
}

// Error lists the existing files.
func (e *ExistsError) Error() string {
	verb := "exists"
	if len(e.Paths) > 1 {
		verb = "exist"
	}
	return fmt.Sprintf("%s already %s; nothing written", strings.Join(e.Paths, ", "), verb)
}

// Write creates a project in a folder, which it creates if necessary, and returns
// the paths of the files, sorted. If one of the files exists, it writes nothing and
// returns an *ExistsError.
func Write(folder, name string, schemas Schemas) ([]string, error) {
	made, err := files(name, schemas)
	if err != nil {
		return nil, err
	}
	return writeNew(folder, made)
}

// writeNew writes files to a folder, by their paths with slashes. If one of them exists, it
// writes nothing and returns an *ExistsError.
func writeNew(folder string, made map[string][]byte) ([]string, error) {
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

// create writes a file that must not exist.
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

// Package suite reads and runs the tests of an application: files
// *.qtype-test.yaml, in which mocks answer in place of models and tools, turns
// are run one after the other, and conditions say what must come of them.
//
// A test asks nobody outside and keeps nothing: each has an App of its own whose
// memories end with it.
package apptest

import (
	"cmp"
	"context"
	_ "embed" // schema.json is part of the program
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/tool"
)

//go:embed schema.json
var schemaJSON string

// Schema is the JSON schema of files of tests, for editors.
func Schema() string { return schemaJSON }

// File is a file of tests whose application was read and which fits it.
type File struct {
	Path  string      // as it was given
	Suite *spec.Suite // what it says

	program *Program
}

// Program is an application that tests run.
type Program struct {
	App *spec.Application
	// New makes the application with what a test replaces in it. Memories are in process.
	New func(Env) (*runtime.App, error)
}

// Env is what a test replaces in an application.
type Env struct {
	Mocks   runtime.Mocks // in place of models and tools
	HTTP    *http.Client  // refuses every request
	Approve tool.Approver // approves every call
}

// Opener reads and checks an application. The program is complete if the list has no
// errors; App is nil if the document is not an application.
type Opener func(ctx context.Context, path string) (*Program, diag.List)

// fileSuffixes are the ends of the names of test files, and those of the documents beside them.
var fileSuffixes = map[string]string{".qtype-test.yaml": ".qtype.yaml", ".qtype-test.yml": ".qtype.yml"}

// Find lists the files of tests that paths name: a file itself, of a folder all
// below it but what lies in hidden folders. The list is in the order of the
// paths, of a folder in alphabetical order, each file once.
func Find(paths []string) ([]string, error) {
	var found []string
	add := func(path string) {
		if !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			add(path)
			continue
		}
		err = filepath.WalkDir(path, func(inside string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && inside != path && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				return fs.SkipDir
			case !d.IsDir() && documentOf(inside) != "":
				add(inside)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// documentOf is the path of the application that a file of tests is named after;
// empty for a file of another name.
func documentOf(path string) string {
	for of, document := range fileSuffixes {
		if name, ok := strings.CutSuffix(path, of); ok {
			return name + document
		}
	}
	return ""
}

// Load reads a file of tests and its application, and holds one against the
// other. The file is nil where the list has errors: of the file's own form, of
// the application, or of tests that do not fit it. The list is in file order.
func Load(ctx context.Context, path string, open Opener) (*File, diag.List) {
	f := &File{Path: path, Suite: &spec.Suite{}}
	files, list := loader.LoadInto(ctx, path, "test file", f.Suite, loader.Options{})
	if len(files) == 0 || f.Suite.Place() == nil {
		return nil, list // there is nothing to go on with
	}
	document := f.Suite.App
	place := f.Suite.Place().Field("app").Span()
	switch {
	case document == "":
		document = documentOf(path)
	case !filepath.IsAbs(document):
		document = filepath.Join(filepath.Dir(path), filepath.FromSlash(document))
	}
	if _, err := os.Stat(document); err != nil {
		list.Add(ruleUnknown.At(place, "there is no application %q", cmp.Or(f.Suite.App, filepath.ToSlash(document))).
			WithHint("app: names its file, relative to this one"))
		return nil, list
	}
	program, faults := open(ctx, document)
	if faults.Errors() > 0 {
		return nil, append(list, onlyErrors(faults)...)
	}
	if program.App == nil {
		list.Add(ruleUnknown.At(place, "%q is no application: only an application has flows to test", filepath.ToSlash(document)))
		return nil, list
	}
	f.program = program
	c := &checker{app: program.App, list: list}
	c.suite(f.Suite)
	c.list.Sort()
	if c.list.Errors() > 0 {
		return nil, c.list
	}
	return f, c.list
}

func onlyErrors(list diag.List) diag.List {
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
}

// Tests are the tests whose names match, in the order of the file; nil matches all.
func (f *File) Tests(names *regexp.Regexp) []*spec.Test {
	var tests []*spec.Test
	for _, t := range f.Suite.Tests {
		if names == nil || names.MatchString(t.Name) {
			tests = append(tests, t)
		}
	}
	return tests
}

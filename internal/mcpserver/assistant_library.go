package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/docs"
	"github.com/qtype-dev/qtype/examples"
	"github.com/qtype-dev/qtype/spec/diag"
)

// The kinds of files, as search results name them.
const (
	documentation = "documentation"
	example       = "example"
)

// library is the embedded documentation and the embedded examples.
type library struct {
	folders []folder
	index   func() *index
}

// folder is one embedded folder.
type folder struct {
	kind  string // documentation or example
	name  string // its name in messages
	files fs.FS
}

func newLibrary() *library {
	l := &library{folders: []folder{{documentation, "docs", docs.Files}, {example, "examples", examples.Files}}}
	l.index = sync.OnceValue(func() *index { return newIndex(l.folders) })
	return l
}

// calls returns the functions of the library's tools.
func (l *library) calls() map[string]call {
	docs, samples := l.folders[0], l.folders[1]
	return map[string]call{
		"list_documentation": docs.list, "get_documentation": docs.get,
		"list_examples": samples.list, "get_example": samples.get,
		"search_library": l.search,
	}
}

// paths returns the paths of all files in alphabetical order.
func (s folder) paths() []string {
	var all []string
	_ = fs.WalkDir(s.files, ".", func(path string, d fs.DirEntry, err error) error { // embedded files can be read
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// list is the tools list_documentation and list_examples.
func (s folder) list(_ context.Context, args arguments) (*answer, error) {
	if err := args.only(); err != nil {
		return nil, err
	}
	return list(s.paths()), nil
}

// get is the tools get_documentation and get_example.
func (s folder) get(_ context.Context, args arguments) (*answer, error) {
	given, err := args.texts("file_path")
	if err != nil {
		return nil, err
	}
	name := path.Clean(given[0])
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("Invalid path: '%s' is outside %s directory", given[0], s.name) //nolint:staticcheck // clients know this text
	}
	content, err := fs.ReadFile(s.files, name)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil, fmt.Errorf("there is no %s file '%s'%s", s.kind, given[0], diag.DidYouMean(name, s.paths()))
	}
	return text(string(content)), nil
}

// search is the tool search_library.
func (l *library) search(_ context.Context, args arguments) (*answer, error) {
	if err := args.only("query", "limit"); err != nil {
		return nil, err
	}
	query, err := args.text("query")
	if err != nil {
		return nil, err
	}
	limit, err := args.integer("limit", 10, 1, 50)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(query) == "" {
		return nil, errors.New("the argument query is empty")
	}
	found := l.index().search(query, limit)
	a := &answer{structured: map[string]any{"result": found}}
	for _, f := range found {
		a.texts = append(a.texts, indented(f))
	}
	return a, nil
}

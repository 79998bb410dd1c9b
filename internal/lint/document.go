package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Document identifies a document: a file, or a block of a Markdown page.
type Document struct {
	Path string // the file, relative if it was named so
	Line int    // line of the page where the block starts; 0 for a whole file

	block   int    // ordinal of the block in the page, from 1; 0 for a whole file
	problem string // why a page is not read, as a predicate; usually empty
	kind    *Kind  // nil for a document
}

// Kind is a kind of files other than documents, such as tests of applications.
type Kind struct {
	Suffixes []string // ends of the names of such files
	Command  string   // the command of qtype that runs such a file
	// Check checks a file, and returns what it declares. The file and the documents that it
	// refers to are read with the options.
	Check func(ctx context.Context, path string, opts loader.Options) (summary string, list diag.List)

	Rules   func() []diag.Rule // returns those of the diagnostics of Check
	Content spec.Node          // the struct that such a file is decoded into; its fields are the keys
	Schema  string             // the JSON schema of such files
	// Document returns the path of the document that a file is about. app is the value of
	// its key app, which may be empty.
	Document func(path, app string) string
}

// check checks a file. Diagnostics have no fixes, which are for documents.
func (k *Kind) check(ctx context.Context, d Document, open Opener) Result {
	summary, list := k.Check(ctx, d.Path, loader.Options{Open: open})
	for i := range list {
		list[i] = list[i].WithoutFix()
	}
	list.Sort()
	return Result{Document: d, Diagnostics: atMost(list), Files: 1, Summary: summary}
}

// Has reports whether a file is of the kind.
func (k *Kind) Has(path string) bool {
	return slices.ContainsFunc(k.Suffixes, func(s string) bool { return strings.HasSuffix(path, s) })
}

// String returns the path without secrets in a URL, and with the line for a block
// of a page.
func (d Document) String() string {
	if d.block == 0 {
		return remotefs.Redacted(d.Path)
	}
	return fmt.Sprintf("%s:%d", d.Path, d.Line)
}

// Finder finds documents.
type Finder struct {
	Paths    []string // files, folders, and patterns with * ? [ ], and ** for any number of folders
	Markdown bool     // includes the Markdown pages of folders
	Kinds    []*Kind  // other files than documents, if they are named or match a pattern
	Open     Opener   // opens pages instead of os.Open; may be nil
}

// Find lists the documents in the order of the paths: named files; *.qtype.yaml and
// *.qtype.yml files of folders; .yaml, .yml and .md files that match a pattern; and
// in Markdown pages every fenced block that is a whole document. It skips folders
// whose names start with a dot, node_modules, and links to folders. Files of a
// folder are sorted by name, and no file is listed twice. Files that cannot be read
// are listed, so that Check reports them.
func (f Finder) Find(ctx context.Context) ([]Document, error) {
	list := documentList{finder: f, seen: map[string]bool{}}
	for _, path := range f.Paths {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := list.add(ctx, path); err != nil {
			return nil, err
		}
	}
	return list.found, nil
}

type documentList struct {
	finder Finder
	found  []Document
	seen   map[string]bool
}

// add adds the documents of one path.
func (l *documentList) add(ctx context.Context, path string) error {
	if strings.HasPrefix(path, "file://") {
		path = remotefs.Path(path)
	}
	info, err := os.Stat(path)
	switch {
	case isRemote(path): // a URL is never a pattern
		l.addFiles(ctx, []string{path})
		return nil
	case err == nil && info.IsDir():
		files, err := filesIn(path, l.inFolder)
		if err == nil && len(files) == 0 {
			return fmt.Errorf("folder %s has no %s", path, l.wanted())
		}
		l.addFiles(ctx, files)
		return err
	case err != nil && strings.ContainsAny(path, "*?["):
		files, err := l.glob(path)
		if err == nil && len(files) == 0 {
			return fmt.Errorf("no file matches %s", path)
		}
		l.addFiles(ctx, files)
		return err
	}
	l.addFiles(ctx, []string{filepath.Clean(path)})
	return nil
}

func isRemote(path string) bool {
	_, remote := remotefs.Remote(path)
	return remote
}

// wanted returns the files that are searched in folders, for messages.
func (l *documentList) wanted() string {
	if l.finder.Markdown {
		return "*.qtype.yaml or *.md"
	}
	return "*.qtype.yaml"
}

// inFolder reports whether a file of a folder is a document.
func (l *documentList) inFolder(path string) bool {
	return strings.HasSuffix(path, ".qtype.yaml") || strings.HasSuffix(path, ".qtype.yml") || l.finder.Markdown && isPage(path)
}

func isPage(path string) bool {
	return strings.EqualFold(filepath.Ext(path), ".md") || strings.EqualFold(filepath.Ext(path), ".markdown")
}

// addFiles adds the documents of files that are not listed yet.
func (l *documentList) addFiles(ctx context.Context, files []string) {
	for _, file := range files {
		if l.seen[file] {
			continue
		}
		l.seen[file] = true
		if isRemote(file) || !isPage(file) {
			l.found = append(l.found, Document{Path: file, kind: l.kindOf(file)})
			continue
		}
		page, err := l.page(ctx, file)
		var over *limitError
		if errors.As(err, &over) {
			l.found = append(l.found, Document{Path: file, problem: over.text})
			continue
		}
		if err != nil {
			l.found = append(l.found, Document{Path: file}) // Check reports the error
			continue
		}
		for i, b := range page.blocks {
			l.found = append(l.found, Document{Path: file, Line: b.from + 1, block: i + 1})
		}
	}
}

// kindOf returns the kind of a file, nil for a document.
func (l *documentList) kindOf(file string) *Kind {
	i := slices.IndexFunc(l.finder.Kinds, func(k *Kind) bool { return k.Has(file) })
	if i < 0 {
		return nil
	}
	return l.finder.Kinds[i]
}

func (l *documentList) page(ctx context.Context, path string) (*page, error) {
	var in io.ReadCloser
	if l.finder.Open != nil {
		var err error
		if in, err = l.finder.Open(ctx, path); err != nil {
			return nil, err
		}
	}
	return readPage(in, path)
}

// filesIn lists the wanted files of a folder in lexical order.
func filesIn(folder string, wanted func(string) bool) ([]string, error) {
	var found []string
	// The trailing separator makes a link to a folder the folder itself.
	err := filepath.WalkDir(folder+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Clean(folder):
			return nil // removed since the folder was listed
		case err != nil:
			return fmt.Errorf("%s: %w", path, cause(err))
		case d.IsDir() && path != filepath.Clean(folder) && hidden(d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && wanted(path):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// hidden reports whether a folder is skipped.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// cause returns the error of the operating system without the path, which the
// caller adds.
func cause(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errors.New("may not be read: permission denied")
	case errors.Is(err, syscall.ELOOP):
		return errors.New("is a cycle of symbolic links")
	}
	return textfmt.WithoutPath(err)
}

// glob lists the files that match a pattern in lexical order.
func (l *documentList) glob(pattern string) ([]string, error) {
	pattern = filepath.ToSlash(filepath.Clean(pattern))
	parts := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	fixed := 0
	for fixed < len(parts) && !strings.ContainsAny(parts[fixed], "*?[") {
		fixed++
	}
	for _, part := range parts {
		if _, err := filepath.Match(part, ""); err != nil {
			return nil, fmt.Errorf("%s is not a valid pattern: unclosed [", pattern)
		}
	}
	root := strings.Join(parts[:fixed], "/")
	switch {
	case root == "" && fixed > 0:
		root = "/"
	case root == "":
		root = "."
	}
	if !isFolder(root) {
		return nil, nil
	}
	return filesIn(filepath.FromSlash(root), func(path string) bool {
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" && !isPage(path) {
			return false
		}
		rel, err := filepath.Rel(root, path)
		return err == nil && matches(parts[fixed:], strings.Split(filepath.ToSlash(rel), "/"))
	})
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// matches reports whether a path matches a pattern, both split at slashes; **
// matches any number of folders.
func matches(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		rest := pattern[1:]
		if len(rest) == 0 {
			return len(path) > 0
		}
		return slices.ContainsFunc(from(path), func(tail []string) bool { return matches(rest, tail) })
	}
	if len(path) == 0 {
		return false
	}
	ok, err := filepath.Match(pattern[0], path[0])
	return err == nil && ok && matches(pattern[1:], path[1:])
}

// from lists the suffixes of a path, longest first.
func from(path []string) [][]string {
	tails := make([][]string, 0, len(path))
	for i := range path {
		tails = append(tails, path[i:])
	}
	return tails
}

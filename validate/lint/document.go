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
)

// Document names one document: a file, or a block of a Markdown page.
type Document struct {
	Path string // the file, relative where it was named so
	Line int    // the line of the page where the block starts; 0 for a whole file

	block   int    // which block of the page it is, from 1; 0 for a whole file
	problem string // why a page is not looked into, in words that follow its name; mostly empty
}

// String is the path, without what may be secret in an address, and with the
// line for a block of a page.
func (d Document) String() string {
	if d.block == 0 {
		return remotefs.Redacted(d.Path)
	}
	return fmt.Sprintf("%s:%d", d.Path, d.Line)
}

// Finder finds documents.
type Finder struct {
	Paths    []string // files, folders, and patterns with * ? [ ] and ** for any folders
	Markdown bool     // look into the Markdown pages of folders, too
	Open     opener   // reads pages in place of the operating system; may be nil
}

// Find lists the documents: of files those that are named, of folders every
// *.qtype.yaml and *.qtype.yml in them, of patterns the .yaml, .yml and .md files
// that match, of Markdown pages every fenced block that is a whole document.
// Folders whose names start with a dot, node_modules and links to folders are
// passed over. The order is that of the paths, in folders that of the names; no
// file comes twice. A file that cannot be read is listed: the check says why.
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

// documentList collects documents.
type documentList struct {
	finder Finder
	found  []Document
	seen   map[string]bool
}

// add adds what one path names.
func (l *documentList) add(ctx context.Context, path string) error {
	if strings.HasPrefix(path, "file://") {
		path = remotefs.Path(path)
	}
	info, err := os.Stat(path)
	switch {
	case isRemote(path): // an address is no pattern, whatever signs it has
		l.addFiles(ctx, []string{path})
		return nil
	case err == nil && info.IsDir():
		files, err := filesIn(path, l.inFolder)
		if err == nil && len(files) == 0 {
			return fmt.Errorf("%s is a folder without any %s", path, l.wanted())
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

// wanted is what a folder is searched for, in words.
func (l *documentList) wanted() string {
	if l.finder.Markdown {
		return "*.qtype.yaml or *.md"
	}
	return "*.qtype.yaml"
}

// inFolder tells whether a file of a folder is looked at.
func (l *documentList) inFolder(path string) bool {
	return strings.HasSuffix(path, ".qtype.yaml") || strings.HasSuffix(path, ".qtype.yml") || l.finder.Markdown && isPage(path)
}

func isPage(path string) bool {
	return strings.EqualFold(filepath.Ext(path), ".md") || strings.EqualFold(filepath.Ext(path), ".markdown")
}

// addFiles adds documents of files that are not listed yet.
func (l *documentList) addFiles(ctx context.Context, files []string) {
	for _, file := range files {
		if l.seen[file] {
			continue
		}
		l.seen[file] = true
		if isRemote(file) || !isPage(file) {
			l.found = append(l.found, Document{Path: file})
			continue
		}
		page, err := l.page(ctx, file)
		var over *limitError
		if errors.As(err, &over) {
			l.found = append(l.found, Document{Path: file, problem: over.text})
			continue
		}
		if err != nil {
			l.found = append(l.found, Document{Path: file}) // the check says what is wrong with it
			continue
		}
		for i, b := range page.blocks {
			l.found = append(l.found, Document{Path: file, Line: b.from + 1, block: i + 1})
		}
	}
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

// filesIn lists the files of a folder that are wanted, by name.
func filesIn(folder string, wanted func(string) bool) ([]string, error) {
	var found []string
	// With a separator at its end a link to a folder is the folder.
	err := filepath.WalkDir(folder+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Clean(folder):
			return nil // gone since the folder was listed
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

// hidden tells whether a folder is passed over.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// cause is what the operating system says, without the path that we name anyway.
func cause(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errors.New("may not be read: permission denied")
	case errors.Is(err, syscall.ELOOP):
		return errors.New("is a symbolic link that leads in a circle")
	case errors.As(err, &path):
		return path.Err
	}
	return err
}

// glob lists the files that match a pattern, by name.
func (l *documentList) glob(pattern string) ([]string, error) {
	pattern = filepath.ToSlash(filepath.Clean(pattern))
	parts := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	fixed := 0
	for fixed < len(parts) && !strings.ContainsAny(parts[fixed], "*?[") {
		fixed++
	}
	for _, part := range parts {
		if _, err := filepath.Match(part, ""); err != nil {
			return nil, fmt.Errorf("%s is not a pattern: a [ has no ]", pattern)
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

// matches tells whether a path matches a pattern, both cut at the slashes; **
// stands for any number of folders.
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

// from lists the tails of a path, itself first.
func from(path []string) [][]string {
	tails := make([][]string, 0, len(path))
	for i := range path {
		tails = append(tails, path[i:])
	}
	return tails
}

package lsp

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
	"github.com/qtype-dev/qtype/validate/lint"
)

// workspace is everything that the editor has open, and what is known about it.
type workspace struct {
	lang    *language
	workDir string // the folder that relative names are relative to
	remote  *remoteCache

	scanning sync.Mutex // held while the folders are looked through; others wait for what is found

	mu          sync.Mutex
	changeCount uint64               // counts changes
	changed     map[string]uint64    // when a file changed last, by path
	docs        map[string]*document // what the editor holds, by path
	uris        map[string]string    // how the editor spells the URI of a path
	folders     []string             // what the editor has open
	roots       map[string]*root     // the documents that were analysed, by path
	scanned     bool                 // the folders were looked through
	includes    map[string][]string  // what the documents in the folders include
}

// root is a document that is checked as a whole.
type root struct {
	analyzing sync.Mutex // held while it is analysed
	latest    *analysis  // guarded by the space; nil before the first
	lastValid *analysis  // the last one that could be read as YAML; nil for none
}

// newSpace makes a space with nothing in it.
func newWorkspace(lang *language) *workspace {
	work, _ := os.Getwd()
	w := &workspace{lang: lang, workDir: work, remote: newRemoteCache(), changed: map[string]uint64{}, docs: map[string]*document{},
		uris: map[string]string{}, roots: map[string]*root{}, includes: map[string][]string{}}
	w.remote.isWanted = w.isIncluded
	return w
}

// open takes a document from the editor, new or in a new version.
func (w *workspace) open(d *document) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.docs[d.path] == nil && len(w.folders) == 0 {
		w.scanned = false
	}
	w.docs[d.path], w.uris[d.path] = d, d.uri
	w.markChanged(d.path)
}

// close forgets a document; from here on the file on disk counts.
func (w *workspace) close(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.docs, path)
	delete(w.roots, path)
	w.markChanged(path)
}

// invalidate notes that a file changed. The caller holds the lock.
func (w *workspace) markChanged(path string) {
	w.changeCount++
	w.changed[path] = w.changeCount
}

// diskChanged notes changes of files that the editor does not hold.
func (w *workspace) diskChanged(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		w.markChanged(p)
	}
	w.scanned = false
}

// remoteChanged notes that something else is known now of a file of another machine;
// of all of them where the address is empty.
func (w *workspace) remoteChanged(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if address != "" {
		w.markChanged(address)
		return
	}
	for path, r := range w.roots {
		if r.latest != nil && r.latest.remote {
			w.markChanged(path)
		}
	}
}

// isIncluded tells whether a document includes a file of another machine.
func (w *workspace) isIncluded(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.roots {
		if r.latest != nil && r.latest.requested[address] {
			return true
		}
	}
	return false
}

// setFolders changes which folders are open.
func (w *workspace) setFolders(add, remove []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.folders = slices.DeleteFunc(w.folders, func(f string) bool { return slices.Contains(remove, f) })
	for _, f := range add {
		if !slices.Contains(w.folders, f) {
			w.folders = append(w.folders, f)
		}
	}
	w.scanned = false
}

// document is what the editor holds at a path; nil for nothing.
func (w *workspace) document(path string) *document {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.docs[path]
}

// documents are the open documents, in the order of their paths.
func (w *workspace) documents() []*document {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*document, 0, len(w.docs))
	for _, d := range w.docs {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *document) int { return strings.Compare(a.path, b.path) })
	return all
}

// uri is how the editor spells the URI of a path.
func (w *workspace) uri(path string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, known := w.uris[path]; known {
		return u
	}
	return uriOf(path)
}

// text is the text of a file: the editor's, else the disk's.
func (w *workspace) text(path string) (string, bool) {
	if d := w.document(path); d != nil {
		return d.text, true
	}
	if isRemote(path) {
		return w.remote.text(path)
	}
	const most = 4 << 20 // bytes, as the loader has it
	in, err := openFile(path)
	if err != nil {
		return "", false
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most))
	return strings.TrimPrefix(string(text), byteOrderMark), err == nil
}

// outlineOf is the outline of a file; nil where there is none.
func (w *workspace) outlineOf(path string) *outline.Node {
	if d := w.document(path); d != nil {
		return d.outline()
	}
	if text, ok := w.text(path); ok {
		return outline.Parse(text)
	}
	return nil
}

// openFile opens a regular file of this machine.
func openFile(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrInvalid}
	}
	return os.Open(path)
}

// analyze is the analysis of the document at a path, made anew only where
// something that it reads has changed.
func (w *workspace) analyze(ctx context.Context, path string) *analysis {
	w.mu.Lock()
	r := w.roots[path]
	if r == nil {
		r = &root{}
		w.roots[path] = r
	}
	w.mu.Unlock()
	r.analyzing.Lock()
	defer r.analyzing.Unlock()
	w.mu.Lock()
	last, now := r.latest, w.changeCount
	w.mu.Unlock()
	if last != nil && w.isFresh(last) || ctx.Err() != nil {
		return last
	}
	made := w.load(ctx, path, now)
	if ctx.Err() != nil {
		return last // what was read may be incomplete
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.latest = made; made.readable() {
		r.lastValid = made
	}
	return made
}

// lastValid is the last analysis of a document that could be read; nil for none.
func (w *workspace) lastValid(path string) *analysis {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.roots[path]; r != nil {
		return r.lastValid
	}
	return nil
}

// fresh tells whether nothing that an analysis read has changed since.
func (w *workspace) isFresh(a *analysis) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.changeCount >= w.changeCount {
		return true
	}
	for path := range a.requested {
		if w.changed[path] > a.changeCount {
			return false
		}
	}
	return true
}

// load reads and checks a document. Open documents stand for their files.
func (w *workspace) load(ctx context.Context, path string, now uint64) *analysis {
	a := w.loadWith(ctx, path, func(name string) (io.ReadCloser, bool) {
		if d := w.document(name); d != nil {
			return io.NopCloser(strings.NewReader(d.text)), true
		}
		return nil, false
	})
	a.changeCount = now
	return a
}

// loadWith reads and checks a document with some files in another form than the disk's.
func (w *workspace) loadWith(ctx context.Context, path string, held func(string) (io.ReadCloser, bool)) *analysis {
	begin := time.Now()
	a := &analysis{path: path, workDir: w.workDir, requested: map[string]bool{path: true}, lineIndexes: map[*source.File]*lineIndex{}}
	remote := false
	open := func(_ context.Context, name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) && !isRemote(name) && name != path {
			name = filepath.Join(w.workDir, name)
		}
		a.requested[name] = true
		if in, ok := held(name); ok {
			return in, nil
		}
		switch {
		case !isRemote(name):
			return openFile(name)
		case !w.remote.isEnabled():
			remote = true
			return nil, remoteDisabled
		}
		remote = true
		return nil, nil // the loader knows what the document may read, and asks the library
	}
	result, diagnostics := loader.Load(ctx, path, loader.Options{Open: open, Fetch: w.remote.read})
	a.doc, a.files = result.Document, result.Files
	// The same as `qtype validate` says, comments that silence included.
	a.diagnostics = lint.ApplyIgnores(a.files, append(diagnostics, validate.Check(a.doc)...))
	a.index = sync.OnceValue(func() *nameIndex { return newNameIndex(a) })
	a.remote = remote
	a.duration = time.Since(begin)
	return a
}

// readable tells whether the document's own text is YAML and holds something.
func (a *analysis) readable() bool {
	d := a.doc
	return d.Application != nil || d.Auths != nil || d.Models != nil || d.Tools != nil || d.Types != nil || d.Variables != nil
}

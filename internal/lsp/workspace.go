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

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
)

// workspace holds the open documents and folders and the results of their analyses.
// It is safe for concurrent use.
type workspace struct {
	lang    func() *language
	workDir string // the folder to which relative paths refer
	remote  *remoteCache

	isolated bool             // no files and no environment variables are read
	today    func() time.Time // nil for no day

	scanning sync.Mutex // held during a scan of the folders, so that others wait for its result

	mu          sync.Mutex
	changeCount uint64               // incremented with each change
	changed     map[string]uint64    // changeCount at the last change of a file, by path
	docs        map[string]*document // the open documents, by path
	uris        map[string]string    // the editor's spelling of URIs, by path
	folders     []string
	roots       map[string]*root    // the analyzed documents, by path
	scanned     bool                // the folders were scanned since the last change
	includes    map[string][]string // the includes of documents in the folders, by path
}

// root is a document that is analyzed as a whole.
type root struct {
	analyzing sync.Mutex // held during an analysis
	latest    *analysis  // guarded by workspace.mu; nil before the first analysis
	lastValid *analysis  // the latest analysis of valid YAML; nil for none
}

func newWorkspace(lang func() *language, opts Options) *workspace {
	work, _ := os.Getwd()
	w := &workspace{lang: lang, isolated: opts.Isolated, today: opts.Today, workDir: work, remote: newRemoteCache(), changed: map[string]uint64{}, docs: map[string]*document{},
		uris: map[string]string{}, roots: map[string]*root{}, includes: map[string][]string{}}
	w.remote.isIncluded = w.isIncluded
	return w
}

// open adds a document or a new version of it.
func (w *workspace) open(d *document) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.docs[d.path] == nil && len(w.folders) == 0 {
		w.scanned = false
	}
	w.docs[d.path], w.uris[d.path] = d, d.uri
	w.markChanged(d.path)
}

// close removes a document: the file on disk is read from now on.
func (w *workspace) close(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.docs, path)
	delete(w.roots, path)
	w.markChanged(path)
}

// markChanged records a change of a file. The caller holds w.mu.
func (w *workspace) markChanged(path string) {
	w.changeCount++
	w.changed[path] = w.changeCount
}

// diskChanged records changes of files on disk.
func (w *workspace) diskChanged(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		w.markChanged(p)
	}
	w.scanned = false
}

// remoteChanged records a change of a remote file, or of all for an empty address.
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

// isIncluded reports whether a document includes a remote file.
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

// setFolders adds and removes open folders.
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

// document returns the open document at a path, nil for none.
func (w *workspace) document(path string) *document {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.docs[path]
}

// documents returns the open documents sorted by path.
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

// uri returns the URI of a path in the editor's spelling.
func (w *workspace) uri(path string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, known := w.uris[path]; known {
		return u
	}
	return uriOf(path)
}

// text returns the text of a file: the editor's if it is open, otherwise that on
// disk.
func (w *workspace) text(path string) (string, bool) {
	if d := w.document(path); d != nil {
		return d.text, true
	}
	if isRemote(path) {
		return w.remote.text(path)
	}
	const most = 4 << 20 // bytes; the limit of package loader
	in, err := w.openFile(path)
	if err != nil {
		return "", false
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most))
	return strings.TrimPrefix(string(text), byteOrderMark), err == nil
}

// outlineOf returns the outline of a file, nil if it cannot be read.
func (w *workspace) outlineOf(path string) *outline.Node {
	if d := w.document(path); d != nil {
		return d.outline()
	}
	if text, ok := w.text(path); ok {
		return outline.Parse(text)
	}
	return nil
}

// isolationError is the reason why an isolated server has no file.
type isolationError struct{}

// Error returns the reason.
func (isolationError) Error() string { return "files are not read here" }

// Reason returns the reason.
func (isolationError) Reason() string { return isolationError{}.Error() }

// openFile opens a local regular file.
func (w *workspace) openFile(path string) (io.ReadCloser, error) {
	if w.isolated {
		return nil, isolationError{}
	}
	info, err := os.Stat(path) // opening a pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrInvalid}
	}
	return os.Open(path)
}

// analyze returns the analysis of the document at a path. It is computed again only
// if a file that it read has changed.
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
		return last // the analysis was interrupted and may be incomplete
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.latest = made; made.isReadable() {
		r.lastValid = made
	}
	return made
}

// lastValid returns the latest analysis of valid YAML of a document, nil for none.
func (w *workspace) lastValid(path string) *analysis {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.roots[path]; r != nil {
		return r.lastValid
	}
	return nil
}

// isFresh reports whether no file that an analysis read has changed since.
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

// load reads and checks a document, using the texts of open documents.
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

// loadWith reads and checks a document. held returns the texts to use instead of
// files.
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
			return w.openFile(name)
		case w.isolated:
			return nil, isolationError{}
		case !w.remote.isEnabled():
			remote = true
			return nil, remoteDisabled
		}
		remote = true
		return nil, nil // the loader checks the address, then calls Fetch
	}
	for _, folder := range []string{filepath.Dir(path), w.workDir} {
		a.requested[filepath.Join(folder, ".env")] = true
	}
	opts := loader.Options{Open: open, Fetch: w.remote.read}
	if w.today != nil {
		opts.Day = w.today()
	}
	if w.isolated {
		opts.NoDotEnv, opts.Offline = true, true
		opts.Lookup = func(string) (string, bool) { return "", false }
	}
	a.redactor = redact.New() // not that of the caller: edits have the text of the document
	ctx = redact.With(ctx, a.redactor)
	a.index = sync.OnceValue(func() *nameIndex { return newNameIndex(a) })
	if k := w.lang().kindOf(path); k != nil {
		a.checkKind(ctx, k, opts)
		a.remote, a.duration = remote, time.Since(begin)
		return a
	}
	result, diagnostics := loader.Load(ctx, path, opts)
	a.doc, a.files = result.Document, result.Files
	// As in `qtype validate`, including comments that suppress diagnostics.
	a.diagnostics = lint.ApplyIgnores(a.files, append(diagnostics, validate.CheckFor(a.doc, parts.From(ctx))...))
	a.remote = remote
	a.duration = time.Since(begin)
	return a
}

// isReadable reports whether the document is valid YAML with content.
func (a *analysis) isReadable() bool {
	d := a.doc
	return d.Application != nil || d.Auths != nil || d.Models != nil || d.Tools != nil || d.Types != nil || d.Variables != nil
}

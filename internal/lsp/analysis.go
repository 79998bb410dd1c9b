package lsp

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// analysis is what the loader and the validator make of a document with all its
// includes, at one moment. It never changes.
type analysis struct {
	root    string         // the path of the document
	clock   uint64         // the workspace's clock when it began
	took    time.Duration  // how long it took
	doc     *spec.Document // linked as far as it could be
	faults  diag.List
	files   []*source.File
	touched map[string]bool // every path that was asked for, found or not
	work    string          // the folder that relative names are relative to
	remote  bool            // it includes something of another machine
	index   func() *index   // made when it is first asked for

	mu    sync.Mutex
	lined map[*source.File]*lineIndex
}

// pathOf is the path of a file that was read.
func (a *analysis) pathOf(f *source.File) string {
	switch {
	case f == nil || f == a.rootFile():
		return a.root
	case filepath.IsAbs(f.Path) || isRemote(f.Path):
		return f.Path
	}
	return filepath.Join(a.work, f.Path)
}

// rootFile is the document's own file; nil where it could not be read.
func (a *analysis) rootFile() *source.File {
	if len(a.files) == 0 {
		return nil
	}
	return a.files[0]
}

// linesOf are the lines of a file as it was read.
func (a *analysis) linesOf(f *source.File) *lineIndex {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, made := a.lined[f]; made {
		return l
	}
	l := newLineIndex(string(f.Text))
	a.lined[f] = l
	return l
}

// place is a span as the protocol has it.
func (a *analysis) place(s source.Span) textRange {
	if s.File == nil || s.Start.Line == 0 {
		return textRange{}
	}
	l := a.linesOf(s.File)
	start, end := l.bytesOf(s)
	return l.span(start, end)
}

// location is a span with the URI of its file.
func (a *analysis) location(s source.Span, uri func(string) string) location {
	return location{uri(a.pathOf(s.File)), a.place(s)}
}

package lsp

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// analysis is what the loader and the validator make of a document with all its
// includes, at one moment. It never changes.
type analysis struct {
	path        string         // the path of the document
	changeCount uint64         // the workspace's clock when it began
	duration    time.Duration  // how long it took
	doc         *spec.Document // linked as far as it could be
	diagnostics diag.List
	files       []*source.File
	requested   map[string]bool   // every path that was asked for, found or not
	workDir     string            // the folder that relative names are relative to
	remote      bool              // it includes something of another machine
	index       func() *nameIndex // made when it is first asked for

	mu          sync.Mutex
	lineIndexes map[*source.File]*lineIndex
}

// pathOf is the path of a file that was read.
func (a *analysis) pathOf(f *source.File) string {
	switch {
	case f == nil || f == a.rootFile():
		return a.path
	case filepath.IsAbs(f.Path) || isRemote(f.Path):
		return f.Path
	}
	return filepath.Join(a.workDir, f.Path)
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
	if l, made := a.lineIndexes[f]; made {
		return l
	}
	l := newLineIndex(string(f.Text))
	a.lineIndexes[f] = l
	return l
}

// place is a span as the protocol has it.
func (a *analysis) rangeOf(s source.Span) protocol.Range {
	if s.File == nil || s.Start.Line == 0 {
		return protocol.Range{}
	}
	l := a.linesOf(s.File)
	start, end := l.sourceOffsets(s)
	return l.rangeOf(start, end)
}

// location is a span with the URI of its file.
func (a *analysis) location(s source.Span, uri func(string) string) protocol.Location {
	return protocol.Location{URI: uri(a.pathOf(s.File)), Range: a.rangeOf(s)}
}

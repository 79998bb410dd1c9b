package lsp

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// analysis is the result of loading and validating a document with its includes. It
// is immutable.
type analysis struct {
	path        string // of the root document
	changeCount uint64 // of the workspace when the analysis started
	duration    time.Duration
	doc         *spec.Document // linked as far as possible
	diagnostics diag.List
	files       []*source.File
	requested   map[string]bool   // the paths of all files that were requested, found or not
	workDir     string            // the folder to which relative paths refer
	remote      bool              // the document includes a remote file
	index       func() *nameIndex // computed on first use
	redactor    *redact.Redactor  // of the secrets of the document

	mu          sync.Mutex
	lineIndexes map[*source.File]*lineIndex
}

// pathOf returns the path of a file that was read.
func (a *analysis) pathOf(f *source.File) string {
	switch {
	case f == nil || f == a.rootFile():
		return a.path
	case filepath.IsAbs(f.Path) || isRemote(f.Path):
		return f.Path
	}
	return filepath.Join(a.workDir, f.Path)
}

// rootFile returns the file of the root document, nil if it could not be read.
func (a *analysis) rootFile() *source.File {
	if len(a.files) == 0 {
		return nil
	}
	return a.files[0]
}

// linesOf returns the line index of a file as it was read.
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

// rangeOf converts a span to the protocol's form.
func (a *analysis) rangeOf(s source.Span) protocol.Range {
	if s.File == nil || s.Start.Line == 0 {
		return protocol.Range{}
	}
	l := a.linesOf(s.File)
	start, end := l.sourceOffsets(s)
	return l.rangeOf(start, end)
}

// location converts a span to a range with the URI of its file.
func (a *analysis) location(s source.Span, uri func(string) string) protocol.Location {
	return protocol.Location{URI: uri(a.pathOf(s.File)), Range: a.rangeOf(s)}
}

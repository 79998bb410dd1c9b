package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// rulesPage is the address of the page about the diagnostic codes.
const rulesPage = "https://github.com/qtype-dev/qtype/blob/main/docs/rules.md#"

// unusedCode is the code of entities that nothing uses, which editors fade out.
const unusedCode = "QT915"

// The codes of models that are shut down, or will be, which editors strike through.
const stoppedCode, stoppingCode = "QT600", "QT601"

// diagnose checks documents and returns the diagnostics by path, and the versions
// of the documents that were checked.
func (s *server) diagnose(ctx context.Context, docs []*document) (found map[string][]protocol.Diagnostic, versions map[string]int) {
	found, versions = map[string][]protocol.Diagnostic{}, map[string]int{}
	done, seen := map[string]bool{}, map[diagnosticKey]bool{}
	for _, d := range docs {
		versions[d.path] = d.version
		if _, known := found[d.path]; !known { // a document before it may include it, or be included by it
			found[d.path] = nil
		}
		for _, root := range s.workspace.rootsOf(d.path) {
			if done[root] {
				continue
			}
			done[root] = true
			a := s.workspace.analyze(ctx, root)
			if a == nil {
				continue
			}
			s.publisher.lastDuration.Store(int64(a.duration))
			s.sortByFile(a, found, seen)
		}
	}
	return found, versions
}

// diagnosticKey identifies a diagnostic. A file that several documents include
// gets each of its diagnostics once.
type diagnosticKey struct {
	path, code, message string
	at                  protocol.Range
}

// sortByFile adds the diagnostics of an analysis to those of their files.
func (s *server) sortByFile(a *analysis, found map[string][]protocol.Diagnostic, seen map[diagnosticKey]bool) {
	for _, f := range a.diagnostics {
		d := s.diagnostic(a, f)
		at, _ := s.visibleSpan(a, f.Span)
		path := a.pathOf(at.File)
		if key := (diagnosticKey{path, d.Code, d.Message, d.Range}); !seen[key] {
			seen[key] = true
			found[path] = append(found[path], d)
		}
	}
}

// diagnostic converts a diagnostic to the protocol's form.
func (s *server) diagnostic(a *analysis, f diag.Diagnostic) protocol.Diagnostic {
	at, isRemoteFile := s.visibleSpan(a, f.Span)
	d := protocol.Diagnostic{Range: a.rangeOf(at), Severity: protocol.SeverityError, Code: f.Code, Source: "qtype", Message: f.Message,
		CodeDescription: &protocol.CodeDescription{Href: rulesPage + strings.ToLower(f.Code)}}
	if isRemoteFile {
		d.Message = fmt.Sprintf("%s:%d:%d: %s", f.Span.File.Path, f.Span.Start.Line, f.Span.Start.Column, f.Message)
	}
	if f.Severity == diag.Warning {
		d.Severity = protocol.SeverityWarning
	}
	if a.remote && (strings.Contains(f.Message, string(remoteDisabled)) || strings.Contains(f.Message, string(remotePending))) {
		d.Severity = protocol.SeverityInformation // not an error of the document: `qtype validate` reads the file
	}
	if f.Hint != "" {
		d.Message += "\n" + f.Hint
	}
	switch f.Code {
	case unusedCode:
		d.Tags = []int{protocol.DiagnosticTagUnnecessary}
	case stoppedCode, stoppingCode:
		d.Tags = []int{protocol.DiagnosticTagDeprecated}
	}
	for _, r := range f.Related {
		if r.Span.File != nil {
			at, _ := s.visibleSpan(a, r.Span)
			d.RelatedInformation = append(d.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: a.location(at, s.workspace.uri), Message: r.Message})
		}
	}
	for _, from := range at.Includes() {
		d.RelatedInformation = append(d.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: a.location(from, s.workspace.uri), Message: "included from here"})
	}
	if f.Suggestion != "" && !isRemoteFile {
		d.Data = &protocol.DiagnosticData{Suggestion: f.Suggestion}
	}
	d.Message = a.redactor.String(d.Message)
	for i := range d.RelatedInformation {
		d.RelatedInformation[i].Message = a.redactor.String(d.RelatedInformation[i].Message)
	}
	return d
}

// visibleSpan returns a span that the editor can show: for a span in a remote
// file, that of the include that leads there.
func (s *server) visibleSpan(a *analysis, at source.Span) (shown source.Span, isRemoteFile bool) {
	for f := at.File; f != nil && f.From.File != nil; f = at.File {
		if path := a.pathOf(f); !isRemote(path) || s.workspace.document(path) != nil {
			break
		}
		at, isRemoteFile = f.From, true
	}
	return at, isRemoteFile
}

// pullDiagnostics handles textDocument/diagnostic.
func (s *server) pullDiagnostics(ctx context.Context, p protocol.TextDocumentParams) (protocol.FullDocumentDiagnosticReport, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return protocol.FullDocumentDiagnosticReport{}, err
	}
	found, _ := s.diagnose(ctx, []*document{d})
	report := protocol.FullDocumentDiagnosticReport{Kind: "full", Items: nonNil(found[d.path])}
	for path, list := range found {
		if path == d.path {
			continue
		}
		if report.RelatedDocuments == nil {
			report.RelatedDocuments = map[string]protocol.FullDocumentDiagnosticReport{}
		}
		report.RelatedDocuments[s.workspace.uri(path)] = protocol.FullDocumentDiagnosticReport{Kind: "full", Items: list}
	}
	return report, nil
}

// The delay between a change and a check. It grows with the duration of a check:
// small documents are checked at once, large ones do not keep the machine busy.
const (
	minDebounce = 3 * time.Millisecond
	maxDebounce = 250 * time.Millisecond
)

// publisher sends diagnostics to an editor that does not pull them, once the user
// pauses typing. It also sends the server's own requests.
type publisher struct {
	server       *server
	changed      chan struct{} // holds one element if documents changed since the last check
	calls        chan serverRequest
	published    map[string]publishedState // by path
	lastDuration atomic.Int64              // of the last check, in nanoseconds
}

// serverRequest is a request to the editor.
type serverRequest struct {
	method string
	params json.RawMessage
}

// publishedState is what the editor shows for a document.
type publishedState struct {
	version int
	list    []protocol.Diagnostic
}

func newPublisher(s *server) *publisher {
	return &publisher{server: s, changed: make(chan struct{}, 1), calls: make(chan serverRequest, 16), published: map[string]publishedState{}}
}

// notify schedules a check.
func (p *publisher) notify() {
	select {
	case p.changed <- struct{}{}:
	default: // scheduled already
	}
}

// call sends a request whose result is not used. It is dropped if the editor does
// not read.
func (p *publisher) call(ctx context.Context, method string, params json.RawMessage) {
	select {
	case p.calls <- serverRequest{method, params}:
	case <-ctx.Done():
	default:
	}
}

// run publishes until ctx is done.
func (p *publisher) run(ctx context.Context, conn *jsonrpc2.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.calls:
			_, _ = conn.DispatchCall(ctx, r.method, r.params)
			continue
		case <-p.changed:
		}
		if p.server.pullsDiagnostics() {
			continue
		}
		p.debounce(ctx)
		if ctx.Err() != nil {
			return
		}
		_ = recoverPanic(func() error { p.publish(ctx, conn); return nil })
	}
}

// debounce waits for a pause in the changes, but not longer than four times that
// pause.
func (p *publisher) debounce(ctx context.Context) {
	pause := min(max(time.Duration(p.lastDuration.Load()/8), minDebounce), maxDebounce)
	timer, end := time.NewTimer(pause), time.After(4*pause)
	defer timer.Stop()
	for {
		select {
		case <-p.changed:
			timer.Reset(pause)
		case <-timer.C:
			return
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// publish checks the open documents and sends the diagnostics that changed.
func (p *publisher) publish(ctx context.Context, conn *jsonrpc2.Conn) {
	found, versions := p.server.diagnose(ctx, p.server.workspace.documents())
	if ctx.Err() != nil {
		return
	}
	for path := range p.published {
		if _, ok := found[path]; !ok {
			found[path] = nil
		}
	}
	for path, list := range found {
		version, isOpen := versions[path]
		last, known := p.published[path]
		if known && last.version == version && reflect.DeepEqual(last.list, list) {
			continue
		}
		params := protocol.PublishDiagnosticsParams{URI: p.server.workspace.uri(path), Diagnostics: nonNil(list)}
		if isOpen {
			params.Version = &version
		}
		if conn.Notify(ctx, "textDocument/publishDiagnostics", params) != nil {
			return
		}
		if p.published[path] = (publishedState{version, list}); !isOpen && len(list) == 0 {
			delete(p.published, path)
		}
	}
}

// nonNil returns an empty list for nil: the protocol does not allow null there.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

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

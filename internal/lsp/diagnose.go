package lsp

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
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

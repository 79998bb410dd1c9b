package lsp

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// publisher sends diagnostics to an editor that does not pull them, once the
// typing rests for a moment.
type publisher struct {
	server *server
	kicks  chan struct{} // something changed
	asks   chan request  // what the server asks the editor
	sent   map[string]publishedState
	took   atomic.Int64 // nanoseconds that the last check took
}

// request is something that the server asks of the editor.
type request struct {
	method string
	params any
}

// publishedState is what an editor was told of a document.
type publishedState struct {
	version int
	list    []diagnostic
}

// How long typing must rest before a document is checked: about as long as the
// check itself takes, so that a small document is answered at once and a large
// one does not keep the machine busy.
const (
	minDebounce = 3 * time.Millisecond
	maxDebounce = 250 * time.Millisecond
)

// newPublisher makes a publisher that does not run yet.
func newPublisher(s *server) *publisher {
	return &publisher{server: s, kicks: make(chan struct{}, 1), asks: make(chan request, 16), sent: map[string]publishedState{}}
}

// notify says that something changed.
func (p *publisher) notify() {
	select {
	case p.kicks <- struct{}{}:
	default: // it is known already
	}
}

// ask sends a request to the editor, whose answer changes nothing.
func (p *publisher) ask(ctx context.Context, method string, params any) {
	select {
	case p.asks <- request{method, params}:
	case <-ctx.Done():
	default: // an editor that reads nothing needs nothing
	}
}

// run works until ctx ends.
func (p *publisher) run(ctx context.Context, conn *jsonrpc2.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.asks:
			_, _ = conn.DispatchCall(ctx, r.method, r.params)
			continue
		case <-p.kicks:
		}
		if p.server.pulls() {
			continue
		}
		p.debounce(ctx)
		if ctx.Err() != nil {
			return
		}
		_ = guard(func() (any, error) { p.publish(ctx, conn); return nil, nil })
	}
}

// debounce waits until nothing changes any more, but not for ever.
func (p *publisher) debounce(ctx context.Context) {
	pause := min(max(time.Duration(p.took.Load()/8), minDebounce), maxDebounce)
	timer, end := time.NewTimer(pause), time.After(4*pause)
	defer timer.Stop()
	for {
		select {
		case <-p.kicks:
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

// publish checks the open documents and sends what changed.
func (p *publisher) publish(ctx context.Context, conn *jsonrpc2.Conn) {
	found, versions := p.server.findings(ctx, p.server.space.documents())
	if ctx.Err() != nil {
		return
	}
	for path := range p.sent {
		if _, there := found[path]; !there {
			found[path] = nil
		}
	}
	for path, list := range found {
		version, open := versions[path]
		last, known := p.sent[path]
		if known && last.version == version && reflect.DeepEqual(last.list, list) {
			continue
		}
		params := publishParams{URI: p.server.space.uri(path), Diagnostics: nonNil(list)}
		if open {
			params.Version = &version
		}
		if conn.Notify(ctx, "textDocument/publishDiagnostics", params) != nil {
			return
		}
		if p.sent[path] = (publishedState{version, list}); !open && len(list) == 0 {
			delete(p.sent, path)
		}
	}
}

// isUnused tells whether a rule is about something that could be left out, which
// editors fade.
func isUnused(code string) bool { return code == "QT915" }

// nonNil makes an absent list an empty one: the protocol knows no null there.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// findings checks documents and sorts what was found by file. A document that
// changed meanwhile is left out: it is checked again at once.
func (s *server) findings(ctx context.Context, docs []*document) (found map[string][]diagnostic, versions map[string]int) {
	found, versions = map[string][]diagnostic{}, map[string]int{}
	done, seen := map[string]bool{}, map[diagnosticKey]bool{}
	for _, d := range docs {
		versions[d.path] = d.version
		found[d.path] = nil
		for _, root := range s.space.rootsOf(d.path) {
			if done[root] {
				continue
			}
			done[root] = true
			a := s.space.analyze(ctx, root)
			if a == nil {
				continue
			}
			s.publisher.took.Store(int64(a.took))
			s.sortByFile(a, found, seen)
		}
	}
	return found, versions
}

// diagnosticKey tells findings apart.
type diagnosticKey struct {
	path, code, message string
	at                  textRange
}

// sortByFile adds the findings of an analysis to those of their files. A file
// that several documents include has each finding once.
func (s *server) sortByFile(a *analysis, found map[string][]diagnostic, seen map[diagnosticKey]bool) {
	for _, f := range a.faults {
		d := s.diagnostic(a, f)
		at, _ := s.visible(a, f.Span)
		path := a.pathOf(at.File)
		if key := (diagnosticKey{path, d.Code, d.Message, d.Range}); !seen[key] {
			seen[key] = true
			found[path] = append(found[path], d)
		}
	}
}

// rulesPage is where the codes are explained.
const rulesPage = "https://github.com/qtype-dev/qtype/blob/main/docs/rules.md#"

// diagnostic is a finding as the protocol has it.
func (s *server) diagnostic(a *analysis, f diag.Diagnostic) diagnostic {
	at, far := s.visible(a, f.Span)
	d := diagnostic{Range: a.place(at), Severity: severityError, Code: f.Code, Source: "qtype", Message: f.Message,
		About: &codeDescription{rulesPage + strings.ToLower(f.Code)}}
	if far {
		d.Message = fmt.Sprintf("%s:%d:%d: %s", f.Span.File.Path, f.Span.Start.Line, f.Span.Start.Column, f.Message)
	}
	if f.Severity == diag.Warning {
		d.Severity = severityWarning
	}
	if a.remote && (strings.Contains(f.Message, string(remoteOff)) || strings.Contains(f.Message, string(remotePending))) {
		d.Severity = severityInformation // `qtype validate` reads it
	}
	if f.Hint != "" {
		d.Message += "\n" + f.Hint
	}
	if isUnused(f.Code) {
		d.Tags = []int{tagUnnecessary}
	}
	for _, r := range f.Related {
		if r.Span.File != nil {
			at, _ := s.visible(a, r.Span)
			d.Related = append(d.Related, diagnosticRelatedInformation{a.location(at, s.space.uri), r.Message})
		}
	}
	for _, from := range at.Includes() {
		d.Related = append(d.Related, diagnosticRelatedInformation{a.location(from, s.space.uri), "included from here"})
	}
	if f.Suggestion != "" && !far {
		d.Data = &diagnosticData{f.Suggestion}
	}
	return d
}

// visible is a span that an editor can show: in a file of another machine, the
// include that leads there.
func (s *server) visible(a *analysis, at source.Span) (shown source.Span, far bool) {
	for f := at.File; f != nil && f.From.File != nil; f = at.File {
		if path := a.pathOf(f); !isRemote(path) || s.space.document(path) != nil {
			break
		}
		at, far = f.From, true
	}
	return at, far
}

// pullDiagnostics answers an editor that asks for the findings of a document.
func (s *server) pullDiagnostics(ctx context.Context, p documentParams) (diagnosticReport, error) {
	d, err := s.held(p.TextDocument)
	if err != nil {
		return diagnosticReport{}, err
	}
	found, _ := s.findings(ctx, []*document{d})
	report := diagnosticReport{Kind: "full", Items: nonNil(found[d.path])}
	for path, list := range found {
		if path == d.path {
			continue
		}
		if report.Related == nil {
			report.Related = map[string]diagnosticReport{}
		}
		report.Related[s.space.uri(path)] = diagnosticReport{Kind: "full", Items: list}
	}
	return report, nil
}

// held is the open document of a request.
func (s *server) held(id documentID) (*document, error) {
	if d := s.space.document(pathOf(id.URI)); d != nil {
		return d, nil
	}
	return nil, failf("the document %s is not open", id.URI)
}

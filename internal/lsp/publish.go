package lsp

import (
	"context"
	"encoding/json"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

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

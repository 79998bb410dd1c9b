package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// The protocol's codes beside those of JSON-RPC.
const (
	codeNotInitialized = -32002
	codeCancelled      = -32800
	codeRequestFailed  = -32803
)

// server is one conversation with an editor. Messages are taken in their order:
// a notification is done with before the next message is read, a request works
// on beside it.
type server struct {
	lang  *language
	opts  Options
	space *workspace

	methods map[string]requestHandler
	notices map[string]notificationHandler

	editor    initializeParams // what the editor can do; set by initialize
	ready     atomic.Bool      // initialize was answered
	stopped   atomic.Bool      // shutdown was asked for
	exited    chan struct{}
	exit      sync.Once
	publisher *publisher

	group   sync.WaitGroup // requests at work, and the publisher
	mu      sync.Mutex
	running map[jsonrpc2.ID]context.CancelFunc
	idle    *sync.Cond // no request is at work
}

// requestHandler answers a request.
type requestHandler func(ctx context.Context, params json.RawMessage) (any, error)

// notificationHandler takes a notification.
type notificationHandler func(ctx context.Context, params json.RawMessage)

// newServer makes a server with its tables of methods.
func newServer(lang *language, opts Options) *server {
	s := &server{lang: lang, opts: opts, space: newSpace(lang), exited: make(chan struct{}), running: map[jsonrpc2.ID]context.CancelFunc{}}
	s.idle = sync.NewCond(&s.mu)
	s.publisher = newPublisher(s)
	s.methods = map[string]requestHandler{
		"shutdown":                          s.shutdown,
		"textDocument/diagnostic":           answer(s.pullDiagnostics),
		"textDocument/completion":           answer(s.complete),
		"textDocument/hover":                answer(s.hover),
		"textDocument/definition":           answer(s.definition),
		"textDocument/references":           answer(s.references),
		"textDocument/documentHighlight":    answer(s.highlights),
		"textDocument/prepareRename":        answer(s.prepareRename),
		"textDocument/rename":               answer(s.rename),
		"textDocument/documentSymbol":       answer(s.symbols),
		"textDocument/codeAction":           answer(s.codeActions),
		"textDocument/formatting":           answer(s.format),
		"textDocument/semanticTokens/full":  answer(s.tokens),
		"textDocument/semanticTokens/range": answer(s.tokens),
	}
	s.notices = map[string]notificationHandler{
		"initialized":                         s.initialized,
		"textDocument/didOpen":                take(s.didOpen),
		"textDocument/didChange":              take(s.didChange),
		"textDocument/didSave":                take(s.didSave),
		"textDocument/didClose":               take(s.didClose),
		"workspace/didChangeWatchedFiles":     take(s.didChangeFiles),
		"workspace/didChangeWorkspaceFolders": take(s.didChangeFolders),
		"workspace/didChangeConfiguration":    s.didConfigure,
	}
	return s
}

// failure is an error that an editor shows.
type failure struct {
	code   int64
	reason string
}

// Error is the reason.
func (f *failure) Error() string { return f.reason }

// failf is the reason why a request has no answer.
func failf(format string, args ...any) error {
	return &failure{codeRequestFailed, fmt.Sprintf(format, args...)}
}

// answer makes a method of a function with typed parameters.
func answer[P, R any](f func(context.Context, P) (R, error)) requestHandler {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var params P
		if err := decode(raw, &params); err != nil {
			return nil, err
		}
		return f(ctx, params)
	}
}

// take makes a notice of a function with typed parameters. A notification that
// cannot be read is dropped, for it has no answer.
func take[P any](f func(context.Context, P)) notificationHandler {
	return func(ctx context.Context, raw json.RawMessage) {
		var params P
		if decode(raw, &params) == nil {
			f(ctx, params)
		}
	}
}

// decode reads parameters and says in words of the protocol what is wrong with them.
func decode(raw json.RawMessage, to any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return &failure{jsonrpc2.CodeInvalidParams, "params are missing"}
	}
	err := json.Unmarshal(raw, to)
	var kind *json.UnmarshalTypeError
	var known *failure
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &kind) && kind.Field != "":
		return &failure{jsonrpc2.CodeInvalidParams, fmt.Sprintf("params.%s cannot be a %s", kind.Field, kind.Value)}
	case err != nil:
		return &failure{jsonrpc2.CodeInvalidParams, "params have the wrong shape"}
	}
	return nil
}

// Handle takes one message.
func (s *server) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	var params json.RawMessage
	if req.Params != nil {
		params = *req.Params
	}
	if req.Notif {
		s.notify(ctx, req.Method, params)
		return
	}
	fault := s.refuses(req.Method)
	if fault != nil {
		s.reply(ctx, conn, req.ID, nil, fault)
		return
	}
	if req.Method == "initialize" {
		result, err := s.initialize(ctx, conn, params)
		s.reply(ctx, conn, req.ID, result, err)
		return
	}
	s.start(ctx, conn, req, params)
}

// notify takes a notification.
func (s *server) notify(ctx context.Context, method string, params json.RawMessage) {
	switch {
	case method == "exit":
		s.exit.Do(func() { close(s.exited) })
	case method == "$/cancelRequest":
		s.cancel(params)
	case s.ready.Load() && !s.stopped.Load() && s.notices[method] != nil:
		_ = guard(func() (any, error) { s.notices[method](ctx, params); return nil, nil })
	}
}

// refuses tells why a request cannot be answered; nil where it can.
func (s *server) refuses(method string) error {
	switch {
	case s.stopped.Load():
		return &failure{jsonrpc2.CodeInvalidRequest, "the server is shutting down"}
	case method == "initialize" && s.ready.Load():
		return &failure{jsonrpc2.CodeInvalidRequest, "initialize was called before"}
	case method != "initialize" && !s.ready.Load():
		return &failure{codeNotInitialized, "initialize comes first"}
	case method != "initialize" && s.methods[method] == nil:
		return &failure{jsonrpc2.CodeMethodNotFound, fmt.Sprintf("there is no method %q", method)}
	}
	return nil
}

// start lets a request work on while further messages are read.
func (s *server) start(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request, params json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.running[req.ID] = cancel
	s.mu.Unlock()
	if req.Method == "shutdown" {
		s.stopped.Store(true)
	}
	s.group.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.running, req.ID)
			s.idle.Broadcast()
			s.mu.Unlock()
		}()
		result, err := guardResult(func() (any, error) { return s.methods[req.Method](ctx, params) })
		if ctx.Err() != nil {
			result, err = nil, &failure{codeCancelled, "the request was cancelled"}
		}
		s.reply(context.WithoutCancel(ctx), conn, req.ID, result, err)
	})
}

// guard runs f; a bug in it must not end the conversation.
func guard(f func() (any, error)) error {
	_, err := guardResult(f)
	return err
}

// guardResult runs f and makes an error of a panic.
func guardResult(f func() (any, error)) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, &failure{jsonrpc2.CodeInternalError, fmt.Sprintf("qtype has a bug: %v", r)}
		}
	}()
	return f()
}

// reply answers a request. That the editor is gone is nobody's concern.
func (s *server) reply(ctx context.Context, conn *jsonrpc2.Conn, id jsonrpc2.ID, result any, err error) {
	var known *failure
	switch {
	case err == nil:
		_ = conn.Reply(ctx, id, result)
	case errors.As(err, &known):
		_ = conn.ReplyWithError(ctx, id, &jsonrpc2.Error{Code: known.code, Message: known.reason})
	default:
		_ = conn.ReplyWithError(ctx, id, &jsonrpc2.Error{Code: codeRequestFailed, Message: err.Error()})
	}
}

// cancel ends a request that is at work.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID jsonrpc2.ID `json:"id"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[p.ID]; cancel != nil {
		cancel()
	}
}

// shutdown waits for the other requests, so that each has its answer before exit.
func (s *server) shutdown(ctx context.Context, _ json.RawMessage) (any, error) {
	stop := time.AfterFunc(shutdownTimeout, s.idle.Broadcast)
	defer stop.Stop()
	end := time.Now().Add(shutdownTimeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.running) > 1 && time.Now().Before(end) && ctx.Err() == nil {
		s.idle.Wait()
	}
	return nil, nil
}

// drain waits until no request is at work, but no longer than most.
func (s *server) drain(most time.Duration) {
	stop := time.AfterFunc(most, s.idle.Broadcast)
	defer stop.Stop()
	end := time.Now().Add(most)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.running) > 0 && time.Now().Before(end) {
		s.idle.Wait()
	}
}

// wait waits for everything that the server started.
func (s *server) wait() { s.group.Wait() }

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

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/redact"
)

// server is one session with an editor. It handles messages in order:
// notifications before the next message is read, requests concurrently.
type server struct {
	lang      func() *language // reads the language when it is first called
	opts      Options
	workspace *workspace

	methods       map[string]requestHandler
	notifications map[string]notificationHandler

	editor            protocol.InitializeParams // set by initialize
	initializeDone    atomic.Bool
	shutdownRequested atomic.Bool
	exited            chan struct{}
	exitOnce          sync.Once
	publisher         *publisher

	jobs     sync.WaitGroup // requests, the publisher and remote reads
	mu       sync.Mutex
	requests map[jsonrpc2.ID]context.CancelFunc // guarded by mu
	idle     *sync.Cond                         // signals that a request ended
}

func newServer(lang func() *language, opts Options) *server {
	s := &server{lang: lang, opts: opts, workspace: newWorkspace(lang, opts), exited: make(chan struct{}), requests: map[jsonrpc2.ID]context.CancelFunc{}}
	s.idle = sync.NewCond(&s.mu)
	s.publisher = newPublisher(s)
	s.methods = map[string]requestHandler{
		"shutdown":                          s.shutdown,
		"textDocument/diagnostic":           handleRequest(s.pullDiagnostics),
		"textDocument/completion":           handleRequest(s.complete),
		"textDocument/hover":                handleRequest(s.hover),
		"textDocument/definition":           handleRequest(s.definition),
		"textDocument/references":           handleRequest(s.references),
		"textDocument/documentHighlight":    handleRequest(s.documentHighlights),
		"textDocument/prepareRename":        handleRequest(s.prepareRename),
		"textDocument/rename":               handleRequest(s.rename),
		"textDocument/documentSymbol":       handleRequest(s.documentSymbols),
		"textDocument/documentLink":         handleRequest(s.documentLinks),
		"textDocument/foldingRange":         handleRequest(s.foldingRanges),
		"workspace/symbol":                  handleRequest(s.workspaceSymbols),
		"textDocument/codeLens":             handleRequest(s.codeLenses),
		"textDocument/inlayHint":            handleRequest(s.inlayHints),
		"textDocument/codeAction":           handleRequest(s.codeActions),
		"textDocument/formatting":           handleRequest(s.format),
		"textDocument/semanticTokens/full":  handleRequest(s.semanticTokens),
		"textDocument/semanticTokens/range": handleRequest(s.semanticTokens),
	}
	s.notifications = map[string]notificationHandler{
		"initialized":                         s.initialized,
		"textDocument/didOpen":                handleNotification(s.didOpen),
		"textDocument/didChange":              handleNotification(s.didChange),
		"textDocument/didSave":                handleNotification(s.didSave),
		"textDocument/didClose":               handleNotification(s.didClose),
		"workspace/didChangeWatchedFiles":     handleNotification(s.didChangeWatchedFiles),
		"workspace/didChangeWorkspaceFolders": handleNotification(s.didChangeWorkspaceFolders),
		"workspace/didChangeConfiguration":    s.didChangeConfiguration,
	}
	return s
}

// Handle implements jsonrpc2.Handler.
func (s *server) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	var params json.RawMessage
	if req.Params != nil {
		params = *req.Params
	}
	if req.Notif {
		s.notify(ctx, req.Method, params)
		return
	}
	if err := s.checkState(req.Method); err != nil {
		reply(ctx, conn, req.ID, nil, err)
		return
	}
	if req.Method == "initialize" {
		result, err := s.initialize(ctx, conn, params)
		reply(ctx, conn, req.ID, result, err)
		return
	}
	s.startRequest(ctx, conn, req, params)
}

// notify handles a notification.
func (s *server) notify(ctx context.Context, method string, params json.RawMessage) {
	switch {
	case method == "exit":
		s.exitOnce.Do(func() { close(s.exited) })
	case method == "$/cancelRequest":
		s.cancel(params)
	case s.initializeDone.Load() && !s.shutdownRequested.Load() && s.notifications[method] != nil:
		_ = recoverPanic(func() error { s.notifications[method](ctx, params); return nil })
	}
}

// checkState returns an error if a request is not allowed now or has no handler.
func (s *server) checkState(method string) error {
	switch {
	case s.shutdownRequested.Load():
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "the server is shutting down"}
	case method == "initialize" && s.initializeDone.Load():
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "the server is already initialized"}
	case method != "initialize" && !s.initializeDone.Load():
		return &jsonrpc2.Error{Code: protocol.CodeServerNotInitialized, Message: "the server is not initialized"}
	case method != "initialize" && s.methods[method] == nil:
		return &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", method)}
	}
	return nil
}

// startRequest runs a request concurrently and replies when it is done.
func (s *server) startRequest(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request, params json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.requests[req.ID] = cancel
	s.mu.Unlock()
	if req.Method == "shutdown" {
		s.shutdownRequested.Store(true)
	}
	s.jobs.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.requests, req.ID)
			s.idle.Broadcast()
			s.mu.Unlock()
		}()
		var result json.RawMessage
		err := recoverPanic(func() (err error) {
			result, err = s.methods[req.Method](ctx, params)
			return err
		})
		if ctx.Err() != nil {
			err = &jsonrpc2.Error{Code: protocol.CodeRequestCancelled, Message: "the request was cancelled"}
		}
		reply(context.WithoutCancel(ctx), conn, req.ID, result, err)
	})
}

// recoverPanic returns the error of f, or one for a panic: a bug in one feature
// must not end the session.
func recoverPanic(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: "a bug in qtype: " + redact.PanicText(r)}
		}
	}()
	return f()
}

// reply sends the response of a request. Write errors are ignored: the connection
// reports that the editor has gone.
func reply(ctx context.Context, conn *jsonrpc2.Conn, id jsonrpc2.ID, result json.RawMessage, err error) {
	if err == nil {
		_ = conn.Reply(ctx, id, result)
		return
	}
	var response *jsonrpc2.Error
	if !errors.As(err, &response) {
		response = &jsonrpc2.Error{Code: protocol.CodeRequestFailed, Message: err.Error()}
	}
	_ = conn.ReplyWithError(ctx, id, response)
}

// cancel cancels a running request.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID jsonrpc2.ID `json:"id"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.requests[p.ID]; cancel != nil {
		cancel()
	}
}

// shutdown waits for the other requests, so that each is answered before exit.
func (s *server) shutdown(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
	s.waitRequests(ctx, 1)
	return json.RawMessage("null"), nil
}

// waitIdle waits until no request is running, up to shutdownTimeout.
func (s *server) waitIdle() { s.waitRequests(context.Background(), 0) }

// waitRequests waits until at most limit requests are running, up to
// shutdownTimeout or until ctx is done.
func (s *server) waitRequests(ctx context.Context, limit int) {
	stop := time.AfterFunc(shutdownTimeout, s.idle.Broadcast)
	defer stop.Stop()
	end := time.Now().Add(shutdownTimeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) > limit && time.Now().Before(end) && ctx.Err() == nil {
		s.idle.Wait()
	}
}

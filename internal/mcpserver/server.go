// Package mcpserver serves the Model Context Protocol: Assistant helps a coding
// assistant to write documents, Application offers the flows of an application as
// tools, the templates of its flows as prompts, and its memories as resources.
//
// Both run over the streamable HTTP transport, as an http.Handler, and over standard
// input and output. They speak the protocol with sessions (up to 2025-11-25) and the one
// without (2026-07-28).
package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server/access"
)

// stateless is the first version of the protocol without sessions. Versions are dates
// and compare as text.
const stateless = "2026-07-28"

// idleTimeout ends an HTTP session whose client has sent nothing for this long and has
// no call in progress.
const idleTimeout = 30 * time.Minute

// maxSessions is the maximum number of HTTP sessions. When half of them are open, a caller that
// has a tenth of them, or more, opens no others: it cannot keep out other callers.
const maxSessions = 10_000

// maxBody is the maximum size of a request over HTTP, in bytes.
const maxBody = 16 << 20

// Server is an MCP server. It is safe for concurrent use by any number of clients.
type Server struct {
	mcp      *sdk.Server
	sessions http.Handler // clients of the protocol with sessions
	requests http.Handler // clients of the protocol without
	owners   owners
	onClose  func() // ends what the server has started; may be nil
}

// newServer returns a server without tools. The middleware runs with the caller of the
// request in its context.
func newServer(version string, hostChecked bool, opts *sdk.ServerOptions, inner ...sdk.Middleware) *Server {
	s := &Server{owners: owners{max: maxSessions}}
	opts.SetCacheable = private
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: "qtype", Version: version}, opts)
	s.mcp.AddReceivingMiddleware(append([]sdk.Middleware{recovered, s.owners.middleware}, inner...)...)
	same := func(*http.Request) *sdk.Server { return s.mcp }
	s.sessions = sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{SessionTimeout: idleTimeout, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: hostChecked})
	s.requests = sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, DisableLocalhostProtection: hostChecked})
	return s
}

// private keeps results out of caches that several callers share.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	c.CacheScope = "private"
}

// recovered is middleware that makes an error of a panic, as package net/http does: the
// library runs calls in goroutines whose panics would end the process.
func recovered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: redact.PanicText(p)}
			}
		}()
		return next(ctx, method, req)
	}
}

// coded returns middleware that gives errors without a code of JSON-RPC that of internal errors, and
// the text that callers may read.
func coded(text func(context.Context, error) string) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, req)
			if _, has := errors.AsType[*jsonrpc.Error](err); err != nil && !has {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text(ctx, err)}
			}
			return result, err
		}
	}
}

// ServeHTTP serves the streamable HTTP transport. The caller is access.PrincipalOf the
// request's context; a session belongs to the caller that has opened it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Protocol-Version") >= stateless {
		s.requests.ServeHTTP(w, r)
		return
	}
	switch s.owners.admit(r) {
	case http.StatusOK:
		s.sessions.ServeHTTP(w, r)
	case http.StatusNotFound: // the client begins a new session
		http.Error(w, "session not found", http.StatusNotFound)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions of the caller: end those that are not used", http.StatusTooManyRequests)
	default:
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
	}
}

// Close ends all sessions and the runs that they have started.
func (s *Server) Close() {
	if s.onClose != nil {
		s.onClose()
	}
	for session := range s.mcp.Sessions() {
		_ = session.Close() // the client may be gone
	}
	s.owners.ended.Wait()
}

// owners has the caller of each HTTP session. The principal of the newest request holds,
// so that changed roles apply at once.
type owners struct {
	max   int // see maxSessions
	mu    sync.Mutex
	by    map[string]access.Principal // by the ids of sessions
	count map[string]int              // sessions by what the limits of their callers count by
	ended sync.WaitGroup              // goroutines that wait for the end of a session
}

// admit returns whether a request may use the session that it names, or begin one: the
// status 200, 404, 429 or 503.
func (o *owners) admit(r *http.Request) int {
	id := r.Header.Get("Mcp-Session-Id")
	caller := access.PrincipalOf(r.Context())
	o.mu.Lock()
	defer o.mu.Unlock()
	owner, known := o.by[id]
	switch {
	case id == "" && len(o.by) >= o.max:
		return http.StatusServiceUnavailable
	case id == "" && len(o.by) >= o.max/2 && o.count[access.LimitKey(r.Context())] >= o.max/10:
		return http.StatusTooManyRequests
	case id == "":
		return http.StatusOK
	case !known || owner.Name != caller.Name:
		return http.StatusNotFound
	}
	o.by[id] = caller
	return http.StatusOK
}

// middleware records who opens a session, and runs each request for its caller.
func (o *owners) middleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		session, ok := r.GetSession().(*sdk.ServerSession)
		if !ok || session.ID() == "" {
			return next(ctx, method, r)
		}
		if method == "initialize" {
			o.open(ctx, session)
		}
		o.mu.Lock()
		owner, known := o.by[session.ID()]
		o.mu.Unlock()
		if known {
			ctx = access.WithPrincipal(ctx, owner)
		}
		return next(ctx, method, r)
	}
}

// open records the caller of a new session until the session ends.
func (o *owners) open(ctx context.Context, session *sdk.ServerSession) {
	id := session.ID()
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.by[id]; known {
		return
	}
	if o.by == nil {
		o.by, o.count = map[string]access.Principal{}, map[string]int{}
	}
	key := access.LimitKey(ctx)
	o.by[id] = access.PrincipalOf(ctx)
	o.count[key]++
	o.ended.Go(func() {
		_ = session.Wait() // how it ended does not matter
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.by, id)
		if o.count[key]--; o.count[key] == 0 {
			delete(o.count, key)
		}
	})
}

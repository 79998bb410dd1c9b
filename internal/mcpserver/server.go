// Package mcpserver serves the Model Context Protocol: Assistant helps a coding
// assistant to write documents, Application offers the flows of an application as
// tools, the templates of its flows as prompts, and its memories as resources.
//
// Both run over the streamable HTTP transport, as an http.Handler, and over standard
// input and output. They speak the protocol with sessions (up to 2025-11-25) and the one
// without (2026-07-28).
package mcpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
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

// drainTimeout is how long calls may take after the end of the input. They are
// canceled then: the client is gone, or a script waits for the last answers.
const drainTimeout = 5 * time.Second

// Run serves one client over a pair of streams, until in ends or ctx is done. Calls that
// are in progress at the end of in are answered if they take at most five seconds. A line that is not a
// message is answered with an error.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	writer := &lockedWriter{out: out}
	reader := &lineReader{in: bufio.NewReader(in), out: writer}
	err := s.mcp.Run(ctx, &drained{sdk.IOTransport{Reader: io.NopCloser(reader), Writer: writer}})
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the client's messages cannot be read: %w", err)
	}
	return nil
}

// drained is a transport whose input ends after the calls that it has delivered.
type drained struct{ sdk.IOTransport }

// Connect returns the connection.
func (t *drained) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainedConn{Connection: c, changed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// drainedConn counts the calls that were not answered.
type drainedConn struct {
	sdk.Connection
	closed    chan struct{}
	closeOnce sync.Once
	late      <-chan time.Time // ends the wait for answers; used by Read only

	mu        sync.Mutex
	ended     bool          // the input has
	calls     int           // of the client that were not answered
	questions []jsonrpc.ID  // to the client that were not answered
	changed   chan struct{} // capacity 1: calls or questions has changed
}

// Read returns the next message. At the end of the input the client cannot answer any
// more: it returns errors in its place, and waits for the answers of the server.
func (c *drainedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if c.late == nil {
		m, err := c.Connection.Read(ctx)
		if !errors.Is(err, io.EOF) {
			c.received(m)
			return m, err
		}
		c.late = time.After(drainTimeout)
	}
	for {
		if m, done := c.next(); m != nil {
			return m, nil
		} else if done {
			return nil, io.EOF
		}
		select {
		case <-c.changed:
		case <-c.late:
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// received notes a message of the client.
func (c *drainedConn) received(m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.IsCall() {
			c.calls++
		}
	case *jsonrpc.Response:
		c.questions = slices.DeleteFunc(c.questions, func(id jsonrpc.ID) bool { return id == m.ID })
	}
}

// next returns the answer to a question after the end of the input, and whether there
// is nothing to wait for.
func (c *drainedConn) next() (m jsonrpc.Message, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if len(c.questions) > 0 {
		id := c.questions[0]
		c.questions = c.questions[1:]
		return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client has ended its input and cannot answer"}}, false
	}
	return nil, c.calls <= 0
}

// Write writes a message. A question is not written after the end of the input.
func (c *drainedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	question, isQuestion := m.(*jsonrpc.Request)
	isQuestion = isQuestion && question.IsCall()
	c.mu.Lock()
	ended := c.ended
	if isQuestion {
		c.questions = append(c.questions, question.ID)
	}
	c.mu.Unlock()
	if isQuestion && ended {
		c.signal()
		return nil
	}
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		c.calls--
		c.mu.Unlock()
		c.signal()
	}
	return err
}

func (c *drainedConn) signal() {
	select {
	case c.changed <- struct{}{}:
	default: // Read will see it
	}
}

// Close closes the connection.
func (c *drainedConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// Path is the path of the server's endpoint over HTTP.
const Path = "/mcp"

// The timeouts of the HTTP server. Answers have none: runs may take long.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// Listen returns a listener for the address of an HTTP server, HOST:PORT or :PORT,
// which is on loopback. Another host than loopback is an ExposedError unless open is
// set.
func Listen(ctx context.Context, address string, open bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &AddressError{address}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); !open && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &ExposedError{host}
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// AddressError reports an address that is not HOST:PORT.
type AddressError struct{ Address string }

// Error names the address.
func (e *AddressError) Error() string {
	return "the address " + e.Address + " is not of the form HOST:PORT"
}

// ExposedError reports a host from which others could call a server that authenticates
// no one.
type ExposedError struct{ Host string }

// Error names the host.
func (e *ExposedError) Error() string {
	return "listening on " + e.Host + " would let others call a server without authentication"
}

// Serve serves clients over HTTP at Path until ctx is done. It closes the server and the
// listener. Requests of web pages of other origins are rejected.
func Serve(ctx context.Context, l net.Listener, s *Server) error {
	routes := http.NewServeMux()
	routes.Handle(Path, http.NewCrossOriginProtection().Handler(s))
	server := &http.Server{Handler: routes, ReadHeaderTimeout: headerTimeout}
	stop := context.AfterFunc(ctx, func() {
		s.Close() // first, because open streams would delay the shutdown
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(late); err != nil {
			_ = server.Close() // connections are cut, there is nothing to report
		}
	})
	err := server.Serve(l)
	if !stop() && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	s.Close()
	return err
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/tool"
)

// link is the connection with a server.
type link struct {
	mu      sync.Mutex
	session *sdk.ClientSession // nil while not connected
}

// take returns the session and forgets it; other limits that to one session, nil for any.
func (l *link) take(only *sdk.ClientSession) *sdk.ClientSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	session := l.session
	if session == nil || only != nil && only != session {
		return nil
	}
	l.session = nil
	return session
}

// close closes the connection, if there is one.
func (l *link) close() {
	if session := l.take(nil); session != nil {
		_ = session.Close() // a failure to close does not matter
	}
}

// connected returns the session with the server, a new one if there is none.
func (s *Server) connected(ctx context.Context) (*sdk.ClientSession, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.link.session != nil {
		return s.link.session, nil
	}
	session, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.catalog.expire() // another process may have other tools
	s.link.session = session
	go func() {
		_ = session.Wait()
		s.drop(session)
	}()
	return session, nil
}

// withSessions is the newest version of the protocol with sessions.
const withSessions = "2025-11-25"

// open connects to the server. One that may make requests gets a session, if it has any:
// many servers can make requests only there.
func (s *Server) open(ctx context.Context) (*sdk.ClientSession, error) {
	versions := []string{""}
	if s.mayRequest() {
		versions = []string{withSessions, ""}
	}
	var failure error
	for _, version := range versions {
		transport, err := s.connect()
		if err != nil {
			return nil, err
		}
		session, err := s.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err == nil {
			return session, nil
		}
		if failure = err; answerOf(err) == nil {
			break
		}
	}
	return nil, failure
}

// client returns a client of the SDK.
func (s *Server) client() *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "qtype", Version: "1"}, s.clientOptions())
	c.AddReceivingMiddleware(s.refuseUndeclared)
	return c
}

// drop closes a connection that has ended.
func (s *Server) drop(session *sdk.ClientSession) {
	if s.link.take(session) != nil {
		_ = session.Close()
		s.catalog.expire()
	}
}

// request sends a request to a server, which it connects to first if it is not connected.
// It is sent again after a wait if no server can have processed it: because it refused the
// connection, or does not know the session any more. A repeatable request is also sent
// again if the server was busy or the connection was lost.
func request[R any](ctx context.Context, s *Server, repeatable bool, send func(context.Context, *sdk.ClientSession) (R, error)) (R, error) {
	for attempts := s.retry.Start(); ; {
		result, again, err := attempt(ctx, s, repeatable, send)
		if err == nil || !again.wanted || !attempts.Next(ctx, again.after) {
			return result, s.explain(err, again.failure, attempts.Count())
		}
	}
}

// attempt connects and sends a request once.
func attempt[R any](ctx context.Context, s *Server, repeatable bool, send func(context.Context, *sdk.ClientSession) (R, error)) (result R, again repetition, err error) {
	connecting, made := withDelivery(ctx)
	session, err := s.connected(connecting)
	if err != nil {
		again = made.repetition(true)
		again.wanted = again.wanted && s.declared.URL != "" // a program that does not start is not started again
		return result, again, err
	}
	calling, sent := withDelivery(ctx)
	if result, err = send(calling, session); err == nil {
		return result, again, nil
	}
	if _, answered := errors.AsType[*answerError](err); answered || answerOf(err) != nil {
		return result, again, err
	}
	again = sent.repetition(repeatable)
	if s.isLost(err) {
		s.drop(session)
	}
	if s.declared.URL == "" {
		again.wanted = repeatable
	}
	return result, again, err
}

// isLost reports whether the connection has to be made again after an error: not if it is
// an answer of the server, a request that did not reach it, or the end of the call.
func (s *Server) isLost(err error) bool {
	_, answered := errors.AsType[*jsonrpc.Error](err)
	return !answered && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// answerOf returns the error that a server answered, nil for a failure of the connection.
func answerOf(err error) *jsonrpc.Error {
	const rejected = -32005 // the SDK's own error for a request that was not sent
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && (answer.Code != rejected || answer.Message != "rejected by transport") {
		return answer
	}
	return nil
}

// explain returns an error of a request as one line: the reason of a network error, the
// how the program ended and the last lines that it wrote, the attempts.
func (s *Server) explain(err, network error, attempts int) error {
	if err == nil {
		return nil
	}
	if answer, ok := errors.AsType[*answerError](err); ok {
		return answer
	}
	if answer := answerOf(err); answer != nil {
		return &answerError{httpx.SingleLine(answer.Message, 1000)}
	}
	text := httpx.SingleLine(err.Error(), 300)
	if network != nil {
		text = httpx.Reason(network)
	}
	how := ""
	if s.isLost(err) {
		how = s.output.end()
	}
	text += s.output.lastLines(how)
	if attempts > 1 {
		text += fmt.Sprintf(", tried %d times", attempts)
	}
	return errors.New(text)
}

// answerError is an error that the server answered, or that follows from its answer.
type answerError struct{ text string }

// Error returns the server's message.
func (e *answerError) Error() string { return e.text }

// delivery is what happened to the HTTP requests of one call. It travels in the context of
// the call, as the errors of the SDK do not show whether a request reached the server.
type delivery struct {
	mu         sync.Mutex
	sent       bool          // there was a request
	reached    bool          // a server may have processed a request
	refused    bool          // the newest request was not processed, and a later one may be
	temporary  bool          // the newest request failed, and a later one may succeed
	retryAfter time.Duration // how long the server requests to wait
	err        error         // of the newest request; nil for an answer
}

type deliveryKey struct{}

// withDelivery returns a context whose requests are recorded in the delivery.
func withDelivery(ctx context.Context) (context.Context, *delivery) {
	d := &delivery{}
	return context.WithValue(ctx, deliveryKey{}, d), d
}

// repetition is whether and when a failed call may be made again.
type repetition struct {
	wanted  bool          // a further attempt may succeed, and cannot do anything twice
	after   time.Duration // the least wait
	failure error         // of the network; nil if the server answered
}

// repetition returns whether a failed call may be made again: where no server has
// processed it, and a repeatable one also where a server may have. A call without a
// request failed because the connection had ended before.
func (d *delivery) repetition(repeatable bool) repetition {
	d.mu.Lock()
	defer d.mu.Unlock()
	safe := !d.reached || repeatable
	return repetition{wanted: safe && (!d.sent || d.refused || d.temporary), after: d.retryAfter, failure: d.err}
}

// record notes the outcome of one request.
func (d *delivery) record(resp *http.Response, unknownSession bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent, d.refused, d.temporary, d.retryAfter, d.err = true, false, false, 0, err
	if err != nil {
		connected, temporary := dialed(err)
		d.temporary, d.reached = temporary, d.reached || connected
		return
	}
	d.refused = unknownSession || resp.StatusCode == http.StatusTooManyRequests
	d.temporary = isBusy(resp.StatusCode) || resp.StatusCode < http.StatusMultipleChoices // its answer was lost
	d.retryAfter = httpx.RetryAfter(resp.Header, time.Now())
	d.reached = d.reached || !d.refused
}

// dialed reports whether a request failed only after there was a connection, and whether
// a later request may succeed.
func dialed(err error) (connected, temporary bool) {
	if tool.IsRefused(err) {
		return false, false
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return true, true
	}
	var errno syscall.Errno // refused, unreachable: not an address that is not allowed
	var dns *net.DNSError
	return false, errors.As(err, &errno) || errors.As(err, &dns) && dns.Temporary()
}

// isBusy reports whether a status means that a later request may succeed.
func isBusy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// deliveryTransport records the outcome of requests in the delivery of their context.
type deliveryTransport struct{ next http.RoundTripper }

// RoundTrip sends a request. If the server does not know the session, the answer has no
// body: the SDK would take a JSON-RPC error in it for an answer to the call.
func (t *deliveryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	unknown := err == nil && isUnknownSession(req, resp)
	if d, _ := req.Context().Value(deliveryKey{}).(*delivery); d != nil && req.Method == http.MethodPost {
		d.record(resp, unknown, err)
	}
	if unknown {
		_ = resp.Body.Close()
		resp.StatusCode, resp.Body, resp.ContentLength = http.StatusNotFound, http.NoBody, 0
	}
	return resp, err
}

// maxRefusal limits how much of a refusal is read.
const maxRefusal = 16 << 10

// isUnknownSession reports whether a server does not know the session of a request: by 404,
// as the protocol has it, or by 400 with a JSON-RPC error about the session, as the
// examples of the TypeScript SDK do.
func isUnknownSession(req *http.Request, resp *http.Response) bool {
	if req.Header.Get("Mcp-Session-Id") == "" {
		return false
	}
	if resp.StatusCode != http.StatusBadRequest {
		return resp.StatusCode == http.StatusNotFound
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	var refusal struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	return err == nil && json.Unmarshal(raw, &refusal) == nil && strings.Contains(strings.ToLower(refusal.Error.Message), "session")
}

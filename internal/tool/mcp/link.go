package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
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

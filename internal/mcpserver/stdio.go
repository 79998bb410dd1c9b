package mcpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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

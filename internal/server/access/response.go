package access

import (
	"context"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

const eventStream = "text/event-stream"

// response is the writer of a response. Each write has a time limit in which the client
// must accept it, so streams need no limit of their duration. It sets headers that depend
// on the type of the content.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	request *http.Request
	body    *body         // nil for a request without one
	timeout time.Duration // of a write; negative for none
	until   time.Time     // the current deadline
	begun   bool          // the header was written
	slot    *slot         // nil before the request is accepted
}

func newResponse(w http.ResponseWriter, r *http.Request, limits Limits) *response {
	return &response{ResponseWriter: w, control: http.NewResponseController(w), request: r,
		body: newBody(w, r, limits), timeout: limits.WriteTime}
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the header, after the rest of the request was read.
func (w *response) WriteHeader(status int) {
	informational := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
	if !w.begun && !informational {
		w.begun = true
		h := w.Header()
		setContentPolicy(h)
		if mediaTypeOf(h) == eventStream {
			w.slot.beginLate()
		}
		if w.request.ProtoMajor == 1 && !w.body.drain(w.request) {
			h.Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// maxWrite is how many bytes are written within one time limit: a client that reads 1 KiB a second
// gets a response of any size.
const maxWrite = 20 << 10

// Write writes a part of the response.
func (w *response) Write(p []byte) (int, error) {
	return writeParts(w, p, w.ResponseWriter.Write)
}

// WriteString writes a part of the response.
func (w *response) WriteString(s string) (int, error) {
	return writeParts(w, s, func(part string) (int, error) { return io.WriteString(w.ResponseWriter, part) })
}

// writeParts writes a part of a response in pieces, each of which has a time limit.
func writeParts[T []byte | string](w *response, p T, write func(T) (int, error)) (n int, err error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	defer w.relax()
	for {
		w.extend()
		written, err := write(p[n:min(n+maxWrite, len(p))])
		if n += written; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// Flush sends what was written.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w *response) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	w.extend()
	err := w.control.Flush()
	w.relax()
	return err
}

// extend renews the deadline of writing. Over HTTP/1 a deadline has an effect only
// during a write, so it is renewed only after a quarter of it.
func (w *response) extend() {
	if w.timeout < 0 {
		return
	}
	now := time.Now()
	if w.until.Sub(now) < w.timeout-w.timeout/4 {
		w.until = now.Add(w.timeout)
		_ = w.control.SetWriteDeadline(w.until) // not supported by recorders of tests
	}
}

// relax ends the deadline over HTTP/2, where it would end the stream between writes.
func (w *response) relax() {
	if w.timeout >= 0 && w.request.ProtoMajor >= 2 {
		w.until = time.Time{}
		_ = w.control.SetWriteDeadline(w.until)
	}
}

// finish prepares what net/http writes after the handler returned.
func (w *response) finish() {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	w.until = time.Time{}
	w.extend()
}

// mediaTypeOf returns the declared type of the content, empty for none.
func mediaTypeOf(h http.Header) string {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

// busyRetry is after which time a caller with too many requests should try again.
const busyRetry = time.Second

// slot is the place of a request among the concurrent requests and streams.
type slot struct {
	control *Control
	caller  string                 // the key of its limits
	refused func(*problem.Problem) // logs a refused stream; may be nil

	mu     sync.Mutex
	stream bool
	timer  *time.Timer // ends the request; nil without a time limit
}

type slotKey struct{}

// LimitKey returns what the limits of the caller of a request count by: its principal, or its
// address without authentication. Without Control.Wrap it is the name of PrincipalOf.
func LimitKey(ctx context.Context) string {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		return s.caller
	}
	return PrincipalOf(ctx).Name
}

// takeSlot counts a request until leave is called. It returns a problem if there are
// too many.
func (c *Control) takeSlot(caller string) (*slot, error) {
	if !c.total.acquire("") {
		p := problem.New(http.StatusServiceUnavailable, "server_busy", "the server has too many concurrent requests")
		p.RetryAfter = busyRetry
		return nil, p
	}
	if !c.requests.acquire(caller) {
		c.total.release("")
		p := problem.New(http.StatusTooManyRequests, "too_many_requests", "more than %d concurrent requests", c.limits.Requests)
		p.RetryAfter = busyRetry
		return nil, p
	}
	return &slot{control: c, caller: caller}, nil
}

// withTimeLimit returns a context that ends after RequestTime, unless the response is a
// stream. Its cause is then a problem.
func (s *slot) withTimeLimit(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, slotKey{}, s))
	if limit := s.control.limits.RequestTime; limit > 0 {
		s.timer = time.AfterFunc(limit, func() {
			cancel(problem.New(http.StatusServiceUnavailable, "request_timeout", "the request took longer than %s", limit))
		})
	}
	return ctx, cancel
}

// leave ends counting.
func (s *slot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.stream {
		s.control.streams.release(s.caller)
	} else {
		s.control.requests.release(s.caller)
	}
	s.control.total.release("")
}

// BeginStream declares that the response to a request is a stream of events. It then
// counts as a concurrent stream instead of a concurrent request, and has no time limit.
// A handler calls it before it starts any work. The error is a *problem.Problem with
// status 429 if the principal has too many streams. Without Control.Wrap it does nothing.
// A response of type text/event-stream without this call becomes a stream when it begins.
// It is safe for concurrent use.
func BeginStream(ctx context.Context) error {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin()
}

// beginLate declares a stream whose handler did not: its response has begun as
// text/event-stream. With too many streams it stays counted as a request. s may be nil.
func (s *slot) beginLate() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin() != nil && s.timer != nil {
		s.timer.Stop()
	}
}

// begin counts a stream instead of a request. The caller holds the lock.
func (s *slot) begin() error {
	if s.stream {
		return nil
	}
	if !s.control.streams.acquire(s.caller) {
		p := problem.New(http.StatusTooManyRequests, "too_many_streams", "more than %d concurrent streams", s.control.limits.Streams)
		p.RetryAfter = busyRetry
		if s.refused != nil {
			s.refused(p)
		}
		return p
	}
	s.control.requests.release(s.caller)
	s.stream = true
	if s.timer != nil {
		s.timer.Stop()
	}
	return nil
}

// CheckRows returns a *problem.Problem with status 413 if a request has more rows than
// Limits.Rows.
func (c *Control) CheckRows(rows int) error {
	if c.limits.Rows < 0 || rows <= c.limits.Rows {
		return nil
	}
	return problem.New(http.StatusRequestEntityTooLarge, "too_many_rows", "a request may have %d rows, this one has %d", c.limits.Rows, rows)
}

package access

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

const (
	drainBytes = 256 << 10   // of an unread body that are read before a response
	drainTime  = time.Second // for that
)

// body reads the body of a request within the limits. The client has BodyTime plus the
// time that its bytes need at BodyRate: slow but steady uploads pass, and a client that
// sends one byte a second does not. Only the time in which the server waits for the
// client counts. Its errors are problems.
type body struct {
	src     io.ReadCloser
	control *http.ResponseController
	time    time.Duration          // BodyTime, negative for no limit
	rate    int64                  // BodyRate
	refused func(*problem.Problem) // logs a refused body; may be nil

	read   int64
	waited time.Duration
	begun  bool
	err    error // of a previous Read; io.EOF at the end
}

// newBody returns the limited body of a request, nil if it has none.
func newBody(w http.ResponseWriter, r *http.Request, limits Limits) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	src := r.Body
	if limits.BodyBytes >= 0 {
		src = http.MaxBytesReader(w, r.Body, limits.BodyBytes)
	}
	return &body{src: src, control: http.NewResponseController(w), time: limits.BodyTime, rate: limits.BodyRate}
}

// LimitsBody reports whether the body of a request is read through access control, which
// has its own limit of its size.
func LimitsBody(r *http.Request) bool {
	_, ok := r.Body.(*body)
	return ok
}

// Read reads from the client.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.begun = true
	if b.time < 0 {
		n, err := b.src.Read(p)
		b.end(err)
		return n, b.err
	}
	start := time.Now()
	_ = b.control.SetReadDeadline(start.Add(b.timeLeft())) // not supported by recorders of tests
	n, err := b.src.Read(p)
	b.waited += time.Since(start)
	b.read += int64(n)
	b.end(err)
	if errors.Is(b.err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // it would end the request
	}
	return n, b.err
}

// end records the error of a Read.
func (b *body) end(err error) {
	b.err = bodyError(err)
	if p := problem.Of(b.err); p != nil && b.refused != nil {
		b.refused(p)
	}
}

// timeLeft returns how long the client may let the server wait.
func (b *body) timeLeft() time.Duration {
	left := b.time - b.waited
	if b.rate > 0 {
		left += time.Duration(float64(b.read) / float64(b.rate) * float64(time.Second))
	}
	return left
}

// Close closes the body.
func (b *body) Close() error { return b.src.Close() }

// bodyError returns the problem of an error of reading.
func bodyError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return problem.New(http.StatusRequestTimeout, "body_timeout", "the body of the request arrived too slowly")
	}
	return err
}

func bodyTooLarge(limit int64) *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "body_too_large", "the body of the request is larger than %d bytes", limit)
}

// drain reads what the handler left of a body, and reports whether the connection can
// be used again. net/http would read it too, but without a time limit. b may be nil.
func (b *body) drain(r *http.Request) bool {
	if b == nil || errors.Is(b.err, io.EOF) {
		return true
	}
	if b.err != nil || !b.begun && r.Header.Get("Expect") != "" || r.ContentLength-b.read > drainBytes {
		b.cut()
		return false
	}
	b.time, b.rate, b.waited, b.refused = drainTime, 0, 0, nil
	_, err := io.CopyN(io.Discard, b, drainBytes)
	if errors.Is(err, io.EOF) {
		return true
	}
	b.cut()
	return false
}

// cut ends all further reading from the client.
func (b *body) cut() { _ = b.control.SetReadDeadline(time.Now()) }

package access

import (
	"io"
	"mime"
	"net/http"
	"time"
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

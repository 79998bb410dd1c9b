package a2a

import (
	"net/http"
	"time"
)

// writeTimeout is how long a client may take to accept a part of a response.
const writeTimeout = 30 * time.Second

// writer is a response that can be flushed, also where others wrap that of the server: the SDK
// requires an http.Flusher.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{w, http.NewResponseController(w)}
}

// Write writes a part of the response.
func (w *writer) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers support it
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *writer) Flush() { _ = w.control.Flush() } // the next Write reports that the client has gone

// Unwrap returns the response for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

package server

import (
	"mime"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
)

// redacted replaces the secrets of the application in responses. Files of the web interface
// and other content that is not text of the application are passed on unchanged.
func (s *Server) redacted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redactor := s.current.Load().App.Redactor()
		if redactor.Empty() {
			next.ServeHTTP(w, r)
			return
		}
		shown := &redactedResponse{ResponseWriter: w, redactor: redactor}
		defer shown.finish()
		next.ServeHTTP(shown, r)
	})
}

// redactedResponse is a response without secrets.
type redactedResponse struct {
	http.ResponseWriter
	redactor *redact.Redactor
	begun    bool
	body     *redact.Writer // nil for content that is passed on unchanged
}

// WriteHeader sends the header, without a length that may change.
func (w *redactedResponse) WriteHeader(status int) {
	if status >= http.StatusOK && !w.begun {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *redactedResponse) begin() {
	w.begun = true
	if h := w.Header(); isText(h.Get("Content-Type")) {
		h.Del("Content-Length")
		w.body = w.redactor.NewWriter(w.ResponseWriter)
	}
}

// Write writes a part of the body.
func (w *redactedResponse) Write(b []byte) (int, error) {
	if !w.begun {
		w.begin()
	}
	if w.body == nil {
		return w.ResponseWriter.Write(b)
	}
	return w.body.Write(b)
}

// Unwrap returns the writer for http.ResponseController.
func (w *redactedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish writes the rest of the body.
func (w *redactedResponse) finish() {
	if w.body != nil {
		_ = w.body.Flush() // the connection has ended
	}
}

// isText reports whether a type of content has texts of the application.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "text/event-stream" || kind == "text/plain" || kind == "application/json" || kind == "application/x-ndjson" || strings.HasSuffix(kind, "+json"))
}

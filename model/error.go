package model

import (
	"fmt"
	"strings"
	"time"
)

// Error is a failure of the provider or the network.
type Error struct {
	Model      string        // the model's id in the document
	Endpoint   string        // the server's address, without credentials
	Status     int           // the HTTP status; 0 if there was no response
	Code       string        // the provider's error code; empty for none
	Message    string        // one line, of the provider or of qtype
	Attempts   int           // how often the request was sent
	RetryAfter time.Duration // how long the provider requests to wait before the next call
	TooLong    bool          // whether the request exceeds the context window
	Requested  int           // TooLong: tokens of the request's messages, 0 if the provider did not report them
	Limit      int           // TooLong: tokens of the context window, 0 if the provider did not report them
	Opaque     bool          // whether the server rejected the request (HTTP 400) without a reason; some do so if it is too long
	Temporary  bool          // whether a later call may succeed
	Dropped    []string      // what was left out of the request, as in Response
	Err        error         // the cause: a network error
}

// Error returns one line: the model, the failure, the server, the attempts.
func (e *Error) Error() string {
	s := e.Message
	if e.Status != 0 {
		s = fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
	}
	if e.Model != "" {
		s = fmt.Sprintf("model %s: %s", e.Model, s)
	}
	if e.Endpoint != "" && !strings.Contains(e.Message, e.Endpoint) {
		s += " (" + e.Endpoint + ")"
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", tried %d times", e.Attempts)
	}
	return s + e.retryAfterText()
}

// Unwrap returns the network error, nil for none.
func (e *Error) Unwrap() error { return e.Err }

package model

import (
	"fmt"
	"strings"
	"time"
)

// Error is what a provider or the network did instead of answering.
type Error struct {
	Model      string        // the model's id in the document
	Endpoint   string        // the server's address, without credentials
	Status     int           // the HTTP status; 0 where there was no answer
	Code       string        // the provider's own code, where it sent one
	Message    string        // in the provider's words, or ours, one line
	Attempts   int           // how often the call was tried
	RetryAfter time.Duration // how long the provider asks to wait
	Temporary  bool          // a later call may succeed
	Err        error         // what lies below: a network error
}

// Error is one line: who, what, how often.
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

// Unwrap is the network's error, where there is one.
func (e *Error) Unwrap() error { return e.Err }

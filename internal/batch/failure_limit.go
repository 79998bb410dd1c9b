package batch

import (
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// maxOutageFailures is how many rows in succession may fail because a model rejects
// the credentials, or because a memory store is not usable or a server away for too long. Then
// the run stops: the other rows would fail too.
const maxOutageFailures = 3

// failureLimit counts failed rows and decides when the run stops.
type failureLimit struct {
	max int64 // the number of failed rows that stops the run; 0 for any number

	mu       sync.Mutex            // rows may fail on another goroutine than they are written on
	failed   int64                 // so far
	rejected int                   // rows in succession whose credentials were rejected
	unserved int                   // rows in succession for which a memory store was not usable, or a server away
	deferred map[*steps.Error]bool // failed rows that were counted, but not written yet
	cause    error                 // of the last row that counts for rejected or unserved
	err      error                 // why the run stops; nil if it continues
	last     *steps.Error          // the row that it stops with
}

// tooManyError stops a run with too many failed rows.
type tooManyError struct {
	failed int64
	last   string // why the last one failed
}

// Error returns the number and the last reason.
func (e *tooManyError) Error() string {
	if e.failed == 1 {
		return "a row failed: " + e.last
	}
	return fmt.Sprintf("%d rows failed, the last because %s", e.failed, e.last)
}

// credentialsError stops a run because a model rejects the credentials.
type credentialsError struct {
	rows  int // in succession
	cause *model.Error
}

// Error names the model.
func (e *credentialsError) Error() string {
	return fmt.Sprintf("stopped: model %s rejected the credentials for %d rows in a row: %v", e.cause.Model, e.rows, e.cause)
}

// Unwrap returns the model's error.
func (e *credentialsError) Unwrap() error { return e.cause }

// serverError stops a run because a memory store is not usable, or a server is away for too long.
type serverError struct {
	rows  int // in succession
	cause error
}

// Error names the server.
func (e *serverError) Error() string {
	return fmt.Sprintf("stopped: %d rows in a row failed: %v", e.rows, e.cause)
}

// Unwrap returns the server's error.
func (e *serverError) Unwrap() error { return e.cause }

// mayDefer reports whether the run continues after a failed row, so that the row may
// wait for its place in the output.
func (p *failureLimit) mayDefer(res *runtime.Result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if res.Replayed || p.deferred[res.Err] {
		return true
	}
	if p.deferred == nil {
		p.deferred = map[*steps.Error]bool{}
	}
	p.deferred[res.Err] = true
	p.count(res.Err)
	return p.err == nil
}

// check records a result and returns an error if the run must stop.
func (p *failureLimit) check(res *runtime.Result) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case res.Replayed: // counted by the earlier run
		return nil
	case res.Err == nil:
		p.rejected, p.unserved = 0, 0
		return nil
	case p.deferred[res.Err]:
		delete(p.deferred, res.Err)
	default:
		p.count(res.Err)
	}
	if p.last == res.Err {
		return p.err
	}
	return nil
}

func (p *failureLimit) count(err *steps.Error) {
	p.failed++
	cause, server := runtime.CredentialsRejected(err), serverFailed(err)
	if p.rejected++; cause == nil {
		p.rejected = 0
	} else {
		p.cause = cause
	}
	if p.unserved++; server == nil {
		p.unserved = 0
	} else {
		p.cause = server
	}
	switch {
	case p.err != nil:
	case p.max > 0 && p.failed >= p.max:
		p.err, p.last = &tooManyError{failed: p.failed, last: err.Error()}, err
	case p.rejected >= maxOutageFailures:
		p.err, p.last = &credentialsError{rows: p.rejected, cause: cause}, err
	case p.unserved >= maxOutageFailures:
		p.err, p.last = &serverError{rows: p.unserved, cause: server}, err
	}
}

// serverFailed returns why other rows would fail, too; nil if they may not.
func serverFailed(err *steps.Error) error {
	if failure := runtime.OutageLasts(err); failure != nil {
		return failure
	}
	if failure := runtime.StoreFailed(err); failure != nil {
		return failure
	}
	return nil
}

package batch

import (
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// maxOutageFailures is how many rows in succession may fail because a model rejects
// the credentials, or because a memory store is not usable. Then the run stops: the other
// rows would fail too.
const maxOutageFailures = 3

// failureLimit counts failed rows and decides when the run stops.
type failureLimit struct {
	max int64 // the number of failed rows that stops the run; 0 for any number

	mu       sync.Mutex            // rows may fail on another goroutine than they are written on
	failed   int64                 // so far
	rejected int                   // rows in succession whose credentials were rejected
	unstored int                   // rows in succession for which a memory store was not usable
	deferred map[*steps.Error]bool // failed rows that were counted, but not written yet
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

// storeError stops a run because a memory store is not usable.
type storeError struct {
	rows  int // in succession
	cause *memory.StoreError
}

// Error names the store.
func (e *storeError) Error() string {
	return fmt.Sprintf("stopped: %d rows in a row failed: %v", e.rows, e.cause)
}

// Unwrap returns the store's error.
func (e *storeError) Unwrap() error { return e.cause }

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
		p.rejected, p.unstored = 0, 0
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
	cause, store := runtime.CredentialsRejected(err), runtime.StoreFailed(err)
	if p.rejected++; cause == nil {
		p.rejected = 0
	}
	if p.unstored++; store == nil {
		p.unstored = 0
	}
	switch {
	case p.err != nil:
	case p.max > 0 && p.failed >= p.max:
		p.err, p.last = &tooManyError{failed: p.failed, last: err.Error()}, err
	case p.rejected >= maxOutageFailures:
		p.err, p.last = &credentialsError{rows: p.rejected, cause: cause}, err
	case p.unstored >= maxOutageFailures:
		p.err, p.last = &storeError{rows: p.unstored, cause: store}, err
	}
}

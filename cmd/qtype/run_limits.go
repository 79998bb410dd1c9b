package main

import (
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// maxAuthFailures is how many rows in a row a model must refuse the credentials of
// until a run ends by itself: the rest would fail alike.
const maxAuthFailures = 3

// failureLimit is how much a run bears.
type failureLimit struct {
	most int64 // failed rows that end the run; 0 for any number

	mu      sync.Mutex            // rows may fail on another goroutine than they come out on
	failed  int64                 // so far
	refused int                   // rows in a row that failed because credentials were refused
	held    map[*steps.Error]bool // the failed rows that were counted and have not come out yet
	end     error                 // why the run ends; nil while it goes on
	with    *steps.Error          // the row that it ends with
}

// tooManyError ends a run that has had enough failed rows.
type tooManyError struct {
	failed int64  // so many
	last   string // why the last one failed
}

// Error gives the number and the last reason.
func (e *tooManyError) Error() string {
	if e.failed == 1 {
		return "a row failed: " + e.last
	}
	return fmt.Sprintf("%d rows failed, the last because %s", e.failed, e.last)
}

// credentialsError ends a run whose every row would fail.
type credentialsError struct {
	rows  int          // that failed one after the other
	cause *model.Error // what the model answered
}

// Error says what to mend.
func (e *credentialsError) Error() string {
	return fmt.Sprintf("the run was ended: model %s refuses the credentials, of the last %d rows and likely of all others: %v", e.cause.Model, e.rows, e.cause)
}

// Unwrap is what the model answered.
func (e *credentialsError) Unwrap() error { return e.cause }

// mayDefer tells whether the run goes on with a row that has failed and waits for
// its place in the output; where it does not, the row is to come out now.
func (p *failureLimit) mayDefer(res *runtime.Result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if res.Replayed || p.held[res.Err] {
		return true
	}
	if p.held == nil {
		p.held = map[*steps.Error]bool{}
	}
	p.held[res.Err] = true
	p.count(res.Err)
	return p.end == nil
}

// check takes note of a result, and answers why the run ends with it.
func (p *failureLimit) check(res *runtime.Result) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case res.Replayed: // the run before has borne it
		return nil
	case res.Err == nil:
		p.refused = 0
		return nil
	case p.held[res.Err]:
		delete(p.held, res.Err)
	default:
		p.count(res.Err)
	}
	if p.with == res.Err {
		return p.end
	}
	return nil
}

// count takes note of a failed row.
func (p *failureLimit) count(err *steps.Error) {
	p.failed++
	cause := runtime.CredentialsRejected(err)
	if p.refused++; cause == nil {
		p.refused = 0
	}
	switch {
	case p.end != nil:
	case p.most > 0 && p.failed >= p.most:
		p.end, p.with = &tooManyError{failed: p.failed, last: err.Error()}, err
	case p.refused >= maxAuthFailures:
		p.end, p.with = &credentialsError{rows: p.refused, cause: cause}, err
	}
}

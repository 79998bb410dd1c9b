package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
)

// refusedRows is how many rows in a row a model must refuse the credentials of
// until a run ends by itself: the rest would fail alike.
const refusedRows = 3

// patience is how much a run bears.
type patience struct {
	most    int64 // failed rows that end the run; 0 for any number
	failed  int64 // so far
	refused int   // rows in a row that failed because credentials were refused
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

// refused is what a model answered that refuses the credentials; nil for a row
// that did not fail for that.
func refused(res *runtime.Result) *model.Error {
	var failure *model.Error
	if res.Err != nil && errors.As(res.Err, &failure) && (failure.Status == http.StatusUnauthorized || failure.Status == http.StatusForbidden) {
		return failure
	}
	return nil
}

// bear takes note of a result, and answers why the run ends with it.
func (p *patience) bear(res *runtime.Result) error {
	if res.Err == nil {
		p.refused = 0
		return nil
	}
	p.failed++
	if p.most > 0 && p.failed >= p.most {
		return &tooManyError{failed: p.failed, last: res.Err.Error()}
	}
	cause := refused(res)
	if cause == nil {
		p.refused = 0
		return nil
	}
	if p.refused++; p.refused >= refusedRows {
		return &credentialsError{rows: p.refused, cause: cause}
	}
	return nil
}

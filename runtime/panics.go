package runtime

import "fmt"

// internalError is the prefix of the error of a step that panicked.
const internalError = "internal error: "

// recoverPanics converts a panic of a step to an error: a bug fails one row, not the
// run.
func recoverPanics(f func() error) (err error) {
	defer recoverTo(&err)
	return f()
}

// recoverTo converts a panic to an error; it must be deferred.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s%v", internalError, p)
	}
}

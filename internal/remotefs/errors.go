package remotefs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Each error of this package has a method Reason that returns the cause without the
// address, for messages that name the address themselves.

// NotFoundError reports an address without content. It matches fs.ErrNotExist.
type NotFoundError struct {
	Address string // as returned by Redacted
}

// Error returns the address and the reason.
func (e *NotFoundError) Error() string { return e.Address + ": " + e.Reason() }

// Reason returns the cause without the address.
func (e *NotFoundError) Reason() string { return "does not exist" }

// Is reports whether target is fs.ErrNotExist.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// StatusError reports an HTTP status.
type StatusError struct {
	Address string // as returned by Redacted
	Code    int    // HTTP status
}

// Error returns the address and the reason.
func (e *StatusError) Error() string { return e.Address + ": " + e.Reason() }

// Reason returns the cause without the address.
func (e *StatusError) Reason() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.Code, statusText(e.Code)))
}

// SchemeError reports an unsupported scheme.
type SchemeError struct {
	Scheme    string   // as in the address
	Supported []string // supported schemes
}

// Error lists the supported schemes.
func (e *SchemeError) Error() string { return e.Reason() }

// Reason returns the same as Error.
func (e *SchemeError) Reason() string {
	return e.Scheme + ":// is not supported; these are: " + strings.Join(e.Supported, ", ")
}

// AccessError reports any other error of reading or writing.
type AccessError struct {
	Address string // as returned by Redacted
	Why     string // without the address
	Err     error  // the cause, or nil; may contain credentials
}

// Error returns the address and the reason.
func (e *AccessError) Error() string { return e.Address + ": " + e.Why }

// Reason returns the cause without the address.
func (e *AccessError) Reason() string { return e.Why }

// Unwrap returns the cause.
func (e *AccessError) Unwrap() error { return e.Err }

// reasonError is implemented by all errors of this package.
type reasonError interface {
	error
	Reason() string
}

// asReasonError converts any error to one of this package.
func asReasonError(address string, err error) error {
	var own reasonError
	if errors.As(err, &own) {
		return own
	}
	return &AccessError{Address: Redacted(address), Why: reasonOf(err), Err: err}
}

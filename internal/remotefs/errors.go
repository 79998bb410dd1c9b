package remotefs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// Each error of this package has a method Reason that tells the cause without
// the address, for who names the place in words of his own.

// NotFoundError says that nothing lies at an address. It is also fs.ErrNotExist.
type NotFoundError struct {
	Address string // as Shown answers it
}

// Error names the address.
func (e *NotFoundError) Error() string { return e.Address + ": " + e.Reason() }

// Reason is the cause alone.
func (e *NotFoundError) Reason() string { return "does not exist" }

// Is makes errors.Is answer true for fs.ErrNotExist.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// StatusError says that a server refused.
type StatusError struct {
	Address string // as Shown answers it
	Code    int    // the status of HTTP
}

// Error names the address.
func (e *StatusError) Error() string { return e.Address + ": " + e.Reason() }

// Reason is the cause alone.
func (e *StatusError) Reason() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.Code, http.StatusText(e.Code)))
}

// BuildTagError says that this program was built without what a scheme needs.
type BuildTagError struct {
	Scheme string // as the address has it: s3
	Tag    string // the build tag that adds it
}

// Error tells which build has it.
func (e *BuildTagError) Error() string { return e.Reason() }

// Reason is the same as Error.
func (e *BuildTagError) Reason() string {
	return e.Scheme + ":// needs a build with -tags " + e.Tag
}

// SchemeError says that no program of this name opens a scheme.
type SchemeError struct {
	Scheme    string   // as the address has it
	Supported []string // those that are
}

// Error lists the supported schemes.
func (e *SchemeError) Error() string { return e.Reason() }

// Reason is the same as Error.
func (e *SchemeError) Reason() string {
	return e.Scheme + ":// is not supported; these are: " + strings.Join(e.Supported, ", ")
}

// AccessError says why something cannot be read or written for another reason.
type AccessError struct {
	Address string // as Shown answers it
	Why     string // in plain words, without the address
	Err     error  // what it comes from, nil where there is nothing; may name the address in full
}

// Error names the address.
func (e *AccessError) Error() string { return e.Address + ": " + e.Why }

// Reason is the cause alone.
func (e *AccessError) Reason() string { return e.Why }

// Unwrap is the error that it comes from.
func (e *AccessError) Unwrap() error { return e.Err }

// reasonError is what all errors of this package are.
type reasonError interface {
	error
	Reason() string
}

// asReasonError makes an error of this package of any other.
func asReasonError(address string, err error) error {
	var known reasonError
	if errors.As(err, &known) {
		return known
	}
	return &AccessError{Address: Redacted(address), Why: httpx.Reason(err), Err: err}
}

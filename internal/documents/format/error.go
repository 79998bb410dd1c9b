package format

import "fmt"

// Kind is the cause of an error, for code that depends on it.
type Kind int

// The kinds of errors.
const (
	Damaged     Kind = iota // the file is not what its format requires
	Encrypted               // the file needs a password
	NoText                  // the file has no text: an image, a scan, a recording
	Unsupported             // the format is not one of Formats
	TooLarge                // the file exceeds a limit
)

// Error reports why a file cannot be converted.
type Error struct {
	Name   string // the file, without credentials
	Kind   Kind   // the cause
	Reason string // what is wrong and what to do, in words for the user
	Err    error  // the error of a library, if there is one; not part of the message
}

// Error returns "name: reason".
func (e *Error) Error() string {
	if e.Name == "" {
		return "the document " + e.Reason
	}
	return e.Name + ": " + e.Reason
}

// Unwrap returns the error of a library.
func (e *Error) Unwrap() error { return e.Err }

// errorf returns an error without its file, which Convert adds.
func errorf(kind Kind, reason string, args ...any) *Error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(reason, args...)}
}

func outputTooLarge(l Limits) *Error {
	return errorf(TooLarge, "has more than %s of text", size(int64(l.Output)))
}

func unpackedTooLarge(l Limits) *Error {
	return errorf(TooLarge, "is larger than %s after decompression", size(l.Unpacked))
}

func tooManyPages(l Limits) *Error {
	return errorf(TooLarge, "has more than %d pages", l.Pages)
}

// caused returns the error with its cause.
func (e *Error) caused(err error) *Error {
	e.Err = err
	return e
}

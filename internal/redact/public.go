package redact

// PublicError is an error whose text callers of a server may read: it names what is wrong with
// their values or with the answer of a model, and nothing about servers, files or credentials.
type PublicError struct{ Err error }

// Error returns the text of the error.
func (e *PublicError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *PublicError) Unwrap() error { return e.Err }

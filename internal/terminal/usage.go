package terminal

import "fmt"

// UsageError reports a wrong command line: a flag or an argument that cannot be what it is.
type UsageError struct {
	Command string // whose help to point to; may be empty
	Reason  string // one line
}

// Error returns the reason.
func (e *UsageError) Error() string { return e.Reason }

// Usagef returns a UsageError that points to no help.
func Usagef(format string, args ...any) error {
	return &UsageError{Reason: fmt.Sprintf(format, args...)}
}

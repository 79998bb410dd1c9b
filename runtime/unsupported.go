package runtime

import (
	"errors"

	"github.com/qtype-dev/qtype/spec"
)

// withPosition adds the position in n to an error about a setting of n that is
// not available.
func withPosition(n spec.Node, err error) error {
	if e, ok := errors.AsType[*spec.NotAvailableError](err); ok {
		return e.At(n)
	}
	return err
}

// stepAvailable returns an error if a setting of the step is not available.
// steps.Build reports step types that are not available.
func stepAvailable(s spec.Step) error {
	if q, ok := s.(*spec.SQLSource); ok && q.Auth.ID != "" {
		err := &spec.NotAvailableError{Owner: "step " + s.EntityID(), Key: "auth", What: "auth (user and password stand in the connection's URL)"}
		return err.At(s)
	}
	return nil
}

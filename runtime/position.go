package runtime

import (
	"errors"

	"github.com/qtype-dev/qtype/spec"
)

// withPosition adds the position in n to an error about a setting of n that is
// not available.
func withPosition(n spec.Node, err error) error {
	if e, ok := errors.AsType[*spec.NotAvailableError](err); ok && e.Owner != "" && e.Position.IsZero() {
		return e.At(n)
	}
	return err
}

// positionPrefix returns the position of a node and a colon, "" if it has no position.
func positionPrefix(n spec.Node) string {
	if span := n.Position().Span(); !span.IsZero() {
		return span.String() + ": "
	}
	return ""
}

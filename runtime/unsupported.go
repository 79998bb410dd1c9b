package runtime

import (
	"errors"

	"github.com/qtype-dev/qtype/model/provider"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// withPosition adds the position in n to an error about a setting of n that is
// not available.
func withPosition(n spec.Node, err error) error {
	var ofModel *provider.NotAvailableError
	if errors.As(err, &ofModel) {
		return (&spec.NotAvailableError{Owner: "model " + ofModel.Model, Key: "provider", What: "provider " + ofModel.Provider}).At(n)
	}
	var ofTool *tool.NotAvailableError
	if errors.As(err, &ofTool) {
		return (&spec.NotAvailableError{Owner: "tool " + ofTool.Tool, Key: "type", What: ofTool.What}).At(n)
	}
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

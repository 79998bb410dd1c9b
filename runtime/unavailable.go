package runtime

import (
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/model/provider"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/tool"
)

// NotAvailableError says that the language knows a setting that this version
// cannot act on. It is never passed over in silence: what runs without it would
// be another application than the document describes.
type NotAvailableError struct {
	Place source.Span // where the setting is written; zero for a document made by a Go program
	What  string      // the setting, such as "memory recent: policy message_window"
}

// Error names the place and the setting.
func (e *NotAvailableError) Error() string {
	s := e.What + " is not available yet"
	if place := e.Place.String(); place != "" {
		s = place + ": " + s
	}
	return s
}

// setting is one key of a node that this version does not act on where it is used.
type setting struct {
	key  string // the key
	used bool   // the document gives it a meaning other than the default
	what string // how it is named; the key where it is empty
}

// unsupportedSetting is the error for the first of the settings that is used; nil where none is.
func unsupportedSetting(n spec.Node, owner string, settings ...setting) error {
	for _, s := range settings {
		if !s.used {
			continue
		}
		place := n.Place().Span()
		if field, ok := n.Place().Lookup(s.key); ok {
			place = field.Key
		}
		what := s.what
		if what == "" {
			what = s.key
		}
		return &NotAvailableError{Place: place, What: owner + ": " + what}
	}
	return nil
}

// withPosition makes a NotAvailableError, with its place, of what a model or a tool
// says of itself.
func withPosition(n spec.Node, err error) error {
	var ofModel *provider.NotAvailableError
	if errors.As(err, &ofModel) {
		return unsupportedSetting(n, "model "+ofModel.Model, setting{key: "provider", used: true, what: "provider " + ofModel.Provider})
	}
	var ofTool *tool.NotAvailableError
	if errors.As(err, &ofTool) {
		return unsupportedSetting(n, "tool "+ofTool.Tool, setting{key: "type", used: true, what: ofTool.What})
	}
	return err
}

// stepAvailable tells whether a step can be run as it is declared; of the types
// of steps that is said by steps.Build.
func stepAvailable(s spec.Step) error {
	owner := fmt.Sprintf("step %s", s.EntityID())
	if q, ok := s.(*spec.SQLSource); ok {
		return unsupportedSetting(s, owner, setting{key: "auth", used: q.Auth.ID != "", what: "auth (user and password stand in the connection's URL)"})
	}
	return nil
}

package spec

import (
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/spec/source"
)

// NotAvailableError reports a setting that the language has and that this
// version does not support. Such a setting is never ignored: without it, the
// application would not do what its document describes.
type NotAvailableError struct {
	Owner    string      // what has the setting, such as "model gpt"; empty if the caller names it
	What     string      // the setting, such as "provider aws-bedrock"
	Key      string      // the key of the owner's declaration that has the setting, such as "provider"
	Position source.Span // the position of the setting; zero if it is not known
}

// Error names the position, the owner and the setting.
func (e *NotAvailableError) Error() string {
	text := e.What + " is not available yet"
	if e.Owner != "" {
		text = e.Owner + ": " + text
	}
	if place := e.Position.String(); place != "" {
		text = place + ": " + text
	}
	return text
}

// At returns a copy of e with the position of its key in n, which declares the
// owner. If n does not have the key, it is the position of n.
func (e *NotAvailableError) At(n Node) *NotAvailableError {
	at := *e
	at.Position = n.Position().Span()
	if field, ok := n.Position().Lookup(e.Key); ok {
		at.Position = field.Key
	}
	return &at
}

// CheckAvailable returns an error if this version does not run declarations such as n:
// its type is a Case that is Missing, or its provider has no client. The validator and
// the builders of steps, tools, models and secret managers call it, so that `validate`
// and `run` agree.
func CheckAvailable(n Node) *NotAvailableError { return checkAvailable(n, missingTypes()) }

// missingTypes returns the types of the unions that this version does not run, and the
// names of their unions.
var missingTypes = sync.OnceValue(func() map[reflect.Type]string { return missingOf(Unions()) })

func missingOf(unions []Union) map[reflect.Type]string {
	missing := map[reflect.Type]string{}
	for _, u := range unions {
		for _, c := range u.Cases {
			if c.Missing {
				missing[reflect.TypeOf(c.New())] = u.Name
			}
		}
	}
	return missing
}

func checkAvailable(n Node, missing map[reflect.Type]string) *NotAvailableError {
	owner := ""
	if e, ok := n.(Entity); ok {
		owner = string(e.Kind()) + " " + e.EntityID()
	}
	if union, ok := missing[reflect.TypeOf(n)]; ok {
		return &NotAvailableError{Owner: owner, What: union + " type " + TypeName(n), Key: "type"}
	}
	if m, ok := n.(ModelEntity); ok {
		if row, known := m.Base().ProviderRow(); !known || row.Client == MissingClient {
			return &NotAvailableError{Owner: owner, What: "provider " + m.Base().Provider, Key: "provider"}
		}
	}
	return nil
}

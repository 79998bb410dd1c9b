package spec

import "github.com/qtype-dev/qtype/spec/source"

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

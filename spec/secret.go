package spec

import "fmt"

// redacted is what every form of a secret prints.
const redacted = "***"

// Secret is a value that must not be seen: written as text (mostly ${VAR}) or
// as a reference to the secret manager. It prints as *** in every form.
type Secret struct {
	text    string
	written bool
	Ref     *SecretReference // set where the document names a secret instead of writing it
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text: text} }

// NewLiteralSecret wraps a text that stands in the document itself.
func NewLiteralSecret(text string) Secret { return Secret{text: text, written: true} }

// Literal tells whether the text stands in the document itself, for everybody
// to read who reads the document, and not in the environment or a file beside it.
func (s Secret) Literal() bool { return s.written }

// Reveal is the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.text }

// IsZero tells whether neither a text nor a reference is there.
func (s Secret) IsZero() bool { return s.text == "" && s.Ref == nil }

// String is ***, or nothing for the empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString is ***.
func (s Secret) GoString() string { return s.String() }

// Format is *** under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText is ***, in JSON, YAML and every other text encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretReference names a secret that the application's secret manager holds.
type SecretReference struct {
	Positioned
	// SecretName is the name of the secret in the secret manager.
	SecretName string `yaml:"secret_name" jsonschema:"required"`
	// Key picks one key of a secret that is a JSON object.
	Key string `yaml:"key"`
}

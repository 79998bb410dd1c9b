package spec

import "fmt"

// redacted replaces a secret wherever it is printed.
const redacted = "***"

// Secret is a confidential value: a text (mostly ${VAR}) or a reference to the
// secret manager. It prints as *** in every form.
type Secret struct {
	text    string
	written bool
	Ref     *SecretReference // set if the document names a secret of the secret manager
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text: text} }

// NewLiteralSecret wraps a text that is written in the document itself, possibly an empty one.
func NewLiteralSecret(text string) Secret { return Secret{text: text, written: true} }

// Literal reports whether the text is written in the document itself, readable for
// everyone who can read the document, and not in the environment or another file.
func (s Secret) Literal() bool { return s.written && s.text != "" }

// IsFixed reports whether the document alone decides the text, which may be empty.
func (s Secret) IsFixed() bool { return s.written }

// Reveal returns the text itself, for the code that sends it.
func (s Secret) Reveal() string { return s.text }

// Resolve returns the text itself, which manager reads if the document names a secret of the
// secret manager; manager is nil for a document without one.
func (s Secret) Resolve(manager func(Secret) (string, error)) (string, error) {
	switch {
	case s.Ref == nil:
		return s.text, nil
	case manager == nil:
		return "", fmt.Errorf("secret %s needs a secret_manager", s.Ref.SecretName)
	}
	return manager(s)
}

// IsZero reports whether there is neither a text nor a reference.
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

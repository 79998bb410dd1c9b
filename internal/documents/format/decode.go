package format

import (
	"errors"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// DecodeText returns the content of a text file in UTF-8, unchanged but for a byte order
// mark. Bytes that the charset does not have become U+FFFD. The error is a *Error.
func DecodeText(file File) (string, error) {
	text, err := toUTF8(file.Data, declaredCharset(file))
	var known *Error
	if errors.As(err, &known) {
		return "", &Error{Name: remotefs.Redacted(file.Name), Kind: known.Kind, Reason: known.Reason, Err: known.Err}
	}
	return text, err
}

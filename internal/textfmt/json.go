package textfmt

import (
	"bytes"
	"encoding/json"
	"io"
)

// CompactJSON returns a value as JSON in one line. The characters <, > and & are not escaped.
func CompactJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// WriteJSON writes a value as JSON with an indentation of two spaces and a line feed at the
// end. The characters <, > and & are not escaped.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

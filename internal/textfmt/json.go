package textfmt

import (
	"encoding/json"
	"io"
)

// WriteJSON writes a value as JSON with an indentation of two spaces and a line feed at the
// end. The characters <, > and & are not escaped.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

package jsontext

import "encoding/json"

// AppendField appends a field of an object after another one: a comma, the name, which needs no escapes, and
// a value. A value that has no JSON is null.
func AppendField(b []byte, name string, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("null")
	}
	b = append(b, ',', '"')
	b = append(append(b, name...), `":`...)
	return append(b, raw...)
}

package records

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// checkValue returns v in the form that encoders take for a column of the kind:
// nil for null, int64, float64, bool or []byte for the kinds of those names, and v
// itself for Text and JSONText, whose text encoders append without a copy.
func checkValue(kind Kind, v any) (any, error) {
	if v == nil || v == value.Unset {
		return nil, nil
	}
	switch kind {
	case Int:
		return convertInt(v)
	case Float:
		return convertFloat(v)
	case Bool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("expected true or false, got %s", shown(v))
	case Bytes:
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		}
		return nil, fmt.Errorf("expected bytes, got %s", shown(v))
	case JSONText:
		return v, nil
	}
	if b, ok := v.([]byte); ok {
		return bytesText(b), nil
	}
	return v, nil
}

// bytesText returns bytes as text: base64 if they are not UTF-8.
func bytesText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func convertInt(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
	case value.Decimal:
		if n, err := value.Coerce(spec.Type{Name: "int"}, v); err == nil {
			return n, nil
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), nil
		}
	}
	return nil, fmt.Errorf("expected a whole number, got %s", shown(v))
}

func convertFloat(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case int:
		return float64(v), nil
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return x, nil
		}
	case value.Decimal:
		if x, err := value.Coerce(spec.Type{Name: "float"}, v); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("expected a number, got %s", shown(v))
}

// appendCell appends the text of a value that is not null, as a flat format writes it.
func appendCell(b []byte, kind Kind, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		if kind == Float {
			return appendFloat(b, v)
		}
	case []byte:
		if kind == Bytes {
			return value.AppendCell(b, v)
		}
	}
	if kind == JSONText {
		return appendNested(b, v)
	}
	if n, ok := v.(json.Number); ok { // its digits as written
		return append(b, n...)
	}
	return value.AppendText(b, v)
}

// appendNested appends a value of a JSONText column as compact JSON.
func appendNested(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.RawMessage:
		var compact bytes.Buffer
		if json.Compact(&compact, v) == nil {
			return append(b, compact.Bytes()...)
		}
	case json.Number:
		return append(b, v...)
	case string:
		return appendJSONText(b, v)
	}
	return value.AppendJSON(b, v)
}

// shown returns a value for a message, cut if it is long.
func shown(v any) string {
	if r := []rune(string(appendNested(nil, v))); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return string(appendNested(nil, v))
}

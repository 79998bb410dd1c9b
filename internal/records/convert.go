package records

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// convertValue brings a value to what a column's encoder takes: nil, string, int64,
// float64, bool, []byte, and compact JSON text as json.RawMessage.
func convertValue(kind Kind, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch kind {
	case Int:
		return fitInt(v)
	case Float:
		return fitFloat(v)
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
		return jsonText(v)
	}
	return convertText(v)
}

func convertText(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case []byte:
		if utf8.Valid(v) {
			return string(v), nil
		}
		return base64.StdEncoding.EncodeToString(v), nil
	case fmt.Stringer:
		return v.String(), nil
	}
	text, err := jsonText(v)
	return string(text), err
}

func fitInt(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), nil
		}
	}
	return nil, fmt.Errorf("expected a whole number, got %s", shown(v))
}

func fitFloat(v any) (any, error) {
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
	}
	return nil, fmt.Errorf("expected a number, got %s", shown(v))
}

// jsonText is a value as compact JSON, with <, > and & as they are.
func jsonText(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && json.Valid(raw) {
		var b bytes.Buffer
		_ = json.Compact(&b, raw) // is valid
		return b.Bytes(), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("the value cannot be written as JSON")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// shown is a value in a message, cut where it is long.
func shown(v any) string {
	text, err := jsonText(v)
	if err != nil {
		return "something else"
	}
	if r := []rune(string(text)); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return string(text)
}

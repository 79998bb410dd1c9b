package runtime

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// The form of values in a cache (docs/cache.md): JSON, in which every object
// says by one key what it holds, so that a value is read back as it was,
// whatever its declared type: {"record": "Order", "fields": {…}}, {"bytes": …}.

// appendValue appends a value in the cache's form. Messages go without their
// ids, so that what a user says twice is the same.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil, string, int64, bool:
		return value.AppendJSON(b, v)
	case float64:
		return appendKeptFloat(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case *value.Record:
		b = append(value.AppendJSON(append(b, `{"record":`...), v.Type()), `,"fields":{`...)
		first := true
		for name, field := range v.All() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendValue(append(value.AppendJSON(b, name), ':'), field)
		}
		return append(b, "}}"...)
	case chat.Message:
		v.ID = ""
		raw, _ := json.Marshal(v) // a message always has a written form
		return append(append(append(b, `{"message":`...), raw...), '}')
	case []byte:
		return append(base64.StdEncoding.AppendEncode(append(b, `{"bytes":"`...), v), `"}`...)
	case value.UnsetType:
		return append(b, `{"unset":true}`...)
	case value.Date:
		return appendKeptText(b, "date", v.String())
	case value.DateTime:
		return appendKeptText(b, "datetime", v.String())
	case value.Time:
		return appendKeptText(b, "time", v.String())
	case json.Number:
		return appendKeptText(b, "number", string(v))
	case chat.Role:
		return value.AppendJSON(b, string(v))
	}
	return appendValue(b, value.FromGo(v))
}

func appendKeptText(b []byte, kind, text string) []byte {
	b = append(value.AppendJSON(append(b, '{'), kind), ':')
	return append(value.AppendJSON(b, text), '}')
}

// appendKeptFloat writes a float so that it is read as one again.
func appendKeptFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendKeptText(b, "float", strconv.FormatFloat(f, 'g', -1, 64))
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !strings.ContainsAny(string(b[start:]), ".e") {
		b = append(b, ".0"...)
	}
	return b
}

var errMalformedEntry = errors.New("it holds something that is no value")

// decodeValue reads a value of the cache's form, as value.Parse has parsed it. A
// message gets an id of its own: it is said anew.
func decodeValue(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		var err error
		for i, item := range v {
			if list[i], err = decodeValue(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *value.Record:
		if v.Len() == 0 {
			return nil, errMalformedEntry
		}
		kind := v.Names()[0]
		content, _ := v.Get(kind)
		return decodeTagged(v, kind, content)
	}
	return v, nil
}

// decodeTagged reads an object, whose first key says what it holds.
func decodeTagged(v *value.Record, kind string, content any) (any, error) {
	text, isText := content.(string)
	switch kind {
	case "unset":
		return value.Unset, nil
	case "record":
		fields, _ := v.Get("fields")
		r, ok := fields.(*value.Record)
		if !ok || !isText {
			return nil, errMalformedEntry
		}
		return decodeRecord(text, r)
	case "message":
		m := chat.Message{}
		if err := json.Unmarshal(value.JSON(content), &m); err != nil {
			return nil, fmt.Errorf("a message: %w", err)
		}
		m.ID = chat.NewID()
		return m, nil
	}
	if !isText {
		return nil, errMalformedEntry
	}
	return decodeScalar(kind, text)
}

func decodeRecord(typ string, r *value.Record) (any, error) {
	fields := make([]value.Field, 0, r.Len())
	for name, raw := range r.All() {
		v, err := decodeValue(raw)
		if err != nil {
			return nil, err
		}
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	return value.NewRecord(typ, fields...), nil
}

// decodeScalar reads what JSON has no form for.
func decodeScalar(kind, text string) (any, error) {
	switch kind {
	case "bytes":
		return base64.StdEncoding.DecodeString(text)
	case "float":
		return strconv.ParseFloat(text, 64)
	case "number":
		return json.Number(text), nil
	case "date", "datetime", "time":
		return coerceTo(kind, text)
	}
	return nil, errMalformedEntry
}

// coerceTo reads a text as the named type.
func coerceTo(name, text string) (any, error) { return value.Coerce(spec.Type{Name: name}, text) }

package value

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// scalar returns the conversion to a primitive type, nil for other types. Its
// second result is false if the value cannot be converted.
func scalar(name string) func(any) (any, bool) {
	switch name {
	case "text":
		return toText
	case "int":
		return toInt
	case "float":
		return toFloat
	case "boolean":
		return toBool
	case "bytes", "file", "image", "audio", "video":
		return toBytes
	case "date", "datetime", "time":
		return temporal(name)
	case "MessageRole":
		return toRole
	case "citation_url", "citation_document", anyType:
		return func(v any) (any, bool) { return fromGo(v), true }
	case mapType:
		return toMap
	case primitiveType:
		return func(v any) (any, bool) {
			s, ok := v.(string)
			return s, ok && slices.Contains(spec.Primitives(), s)
		}
	}
	return nil
}

func temporal(name string) func(any) (any, bool) {
	switch name {
	case "date":
		return toDate
	case "datetime":
		return toDateTime
	}
	return toTime
}

// toText accepts strings and UTF-8 bytes, but no numbers, booleans or dates.
func toText(v any) (any, bool) {
	switch text := v.(type) {
	case string:
		return v, true // avoids an allocation
	case []byte:
		return string(text), utf8.Valid(text)
	}
	return nil, false
}

// toInt accepts integers in any form, and booleans as 1 and 0.
func toInt(v any) (any, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case float64:
		// 2^63 is the first float above the range.
		if v != math.Trunc(v) || v < -1<<63 || v >= 1<<63 {
			return nil, false
		}
		return int64(v), true
	case string:
		return parseInt(v)
	}
	return nil, false
}

// parseInt accepts a sign, surrounding spaces, and a fraction of zeros.
func parseInt(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if whole, frac, ok := strings.Cut(s, "."); ok {
		if frac == "" || strings.Trim(frac, "0") != "" {
			return nil, false
		}
		s = whole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// toFloat accepts numbers, numeric text and booleans.
func toFloat(v any) (any, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		if v {
			return 1.0, true
		}
		return 0.0, true
	case json.Number:
		return parseFloat(string(v))
	case string:
		return parseFloat(v)
	}
	return nil, false
}

// parseFloat accepts decimal notation, nan and inf, but not Go's hexadecimal floats
// and underscores.
func parseFloat(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xX_") {
		return nil, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// toBool accepts words for yes and no, 1 and 0.
func toBool(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int64:
		return v == 1, v == 0 || v == 1
	case float64:
		return v == 1, v == 0 || v == 1
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes", "on", "y", "t", "1":
			return true, true
		case "false", "no", "off", "n", "f", "0":
			return false, true
		}
	}
	return nil, false
}

// toBytes accepts text as its UTF-8 bytes, a data URL in base64 and {"base64": "…"}.
func toBytes(v any) (any, bool) {
	switch v := v.(type) {
	case []byte:
		return v, true
	case string:
		if head, encoded, ok := strings.Cut(v, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			if b, err := base64.StdEncoding.DecodeString(encoded); err == nil {
				return b, true
			}
		}
		return []byte(v), true
	case *Record:
		text, _ := v.Get("base64")
		s, ok := text.(string)
		if !ok || v.Len() != 1 {
			return nil, false
		}
		b, err := base64.StdEncoding.DecodeString(s)
		return b, err == nil
	}
	return nil, false
}

// toDate accepts ISO dates, and instants at midnight.
func toDate(v any) (any, bool) {
	if d, ok := v.(Date); ok {
		return d, true
	}
	if _, ok := v.(bool); ok {
		return nil, false
	}
	var at DateTime
	var ok bool
	if s, isText := v.(string); isText {
		at, ok = ParseDateTime(s)
	} else {
		at, ok = instant(v)
	}
	return at.Date(), ok && at.midnight()
}

// toDateTime accepts ISO 8601, and seconds since 1970 as a number or numeric text. A text of digits
// that may be a date is not accepted.
func toDateTime(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		if d, ok := ParseDateTime(v); ok {
			return d, true
		}
		seconds, ok := parseFloat(v)
		if !ok || isCompactDate(v) {
			return nil, false
		}
		d, ok := unix(seconds.(float64))
		return d, ok
	case Date:
		return DateTime{Time: time.Date(v.Year, v.Month, v.Day, 0, 0, 0, 0, time.UTC)}, true
	}
	d, ok := instant(v)
	return d, ok
}

// instant accepts a DateTime, or seconds since 1970.
func instant(v any) (DateTime, bool) {
	switch v := v.(type) {
	case DateTime:
		return v, true
	case int64:
		return unix(float64(v))
	case float64:
		return unix(v)
	}
	return DateTime{}, false
}

// toTime accepts HH:MM[:SS[.f]] and seconds since midnight.
func toTime(v any) (any, bool) {
	var seconds float64
	switch v := v.(type) {
	case Time:
		return v, true
	case string:
		t, ok := parseTime(v)
		return t, ok
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	default:
		return nil, false
	}
	t := time.Duration(math.Round(seconds*1e6)) * time.Microsecond
	return Time(t), seconds >= 0 && seconds < 86400 && t < day
}

// toRole accepts the names of the roles of package chat.
func toRole(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, slices.Contains(chat.Roles(), chat.Role(v))
	case chat.Role:
		return string(v), slices.Contains(chat.Roles(), v)
	}
	return nil, false
}

// toMap accepts any object.
func toMap(v any) (any, bool) {
	r, ok := v.(*Record)
	if !ok {
		return nil, false
	}
	return fromGo(r), true
}

package value

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Text returns v as templates and models show it: strings unchanged, null and Unset
// as "", true and false, dates in ISO form, a ChatMessage as its text, lists and
// records as JSON. Floats have a decimal point: 1.0.
func Text(v any) string {
	switch v := plainGo(v).(type) {
	case nil, UnsetType:
		return ""
	case string:
		return v
	case ParseCell:
		return string(v)
	case chat.Role:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return floatText(v)
	case json.Number:
		return string(v)
	case Decimal:
		return string(v)
	case chat.Message:
		return v.Text()
	}
	return compoundText(v)
}

// AppendText appends Text(v) to b.
func AppendText(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(b, v...)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case []any, *Record:
		return AppendJSON(b, v)
	}
	return append(b, Text(v)...)
}

// compoundText is Text for values other than plain scalars.
func compoundText(v any) string {
	switch v := plainGo(v).(type) {
	case Date:
		return v.String()
	case DateTime:
		return v.String()
	case Time:
		return v.String()
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return string(JSON(v))
	case []any, *Record:
		return string(JSON(v))
	}
	return ""
}

// floatText formats floats as Python does, for compatibility with existing
// documents: the shortest exact digits, always a decimal point, an exponent from
// 1e16 and below 1e-4.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

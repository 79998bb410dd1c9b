package value

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec/chat"
)

// plainGo converts a Go value to a run-time value, one level deep. The elements of
// lists and records are converted when they are accessed.
func plainGo(v any) any {
	switch v := v.(type) {
	case nil, string, int64, float64, bool, []byte, []any, *Record, ParseCell, UnsetType, chat.Message, chat.Role, Date, DateTime, Time, Decimal:
		return v
	case json.Number:
		return number(string(v))
	case map[string]any:
		return mapRecord(v)
	case time.Time:
		return zoned(v)
	case *chat.Message:
		if v == nil {
			return nil
		}
		return *v
	}
	return fromReflect(v)
}

// fromReflect converts other numbers, lists and maps, and everything else through
// encoding/json.
func fromReflect(v any) any {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return number(strconv.FormatUint(r.Uint(), 10))
	case reflect.Float32:
		return FromFloat32(float32(r.Float()))
	case reflect.Float64:
		return r.Float()
	case reflect.String:
		return r.String()
	case reflect.Bool:
		return r.Bool()
	case reflect.Slice, reflect.Array:
		if r.Type() != reflect.TypeFor[json.RawMessage]() {
			return listOf(r)
		}
	case reflect.Pointer, reflect.Interface, reflect.Map:
		if r.IsNil() {
			return nil
		}
	}
	return throughJSON(v)
}

// listOf converts a Go slice to a list, or to bytes.
func listOf(r reflect.Value) any {
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 {
		return r.Bytes()
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Index(i).Interface()
	}
	return out
}

// throughJSON encodes and parses v as JSON. It returns v if that fails.
func throughJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	out, err := Parse(string(text))
	if err != nil {
		return v
	}
	return out
}

// FromFloat32 returns the float with the digits that 32 bits have: 0.1, and not the float64
// nearest to the float32, 0.10000000149011612.
func FromFloat32(f float32) float64 {
	wide, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64) // cannot fail
	return wide
}

// number returns a JSON number in the smallest type that represents it exactly.
func number(literal string) any {
	if !strings.ContainsAny(literal, ".eE") {
		if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return n
		}
		return json.Number(literal)
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		return json.Number(literal)
	}
	return f
}

// mapRecord converts a map to a free-form object with sorted names.
func mapRecord(m map[string]any) *Record {
	fields := make([]Field, 0, len(m))
	for name, v := range m {
		fields = append(fields, Field{name, v})
	}
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return &Record{fields: fields}
}

// fromGo converts v recursively, for free-form content.
func fromGo(v any) any {
	switch v := plainGo(v).(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fromGo(v[i])
		}
		return out
	case *Record:
		out := make([]Field, len(v.fields))
		for i, f := range v.fields {
			out[i] = Field{f.Name, fromGo(f.Value)}
		}
		return &Record{typ: v.typ, fields: out}
	case ParseCell:
		return string(v)
	case Decimal:
		return v.number()
	case chat.Role:
		return string(v)
	case UnsetType:
		return nil
	default:
		return v
	}
}

// ToGo returns v as encoding/json would decode it, for code that does not know this
// package: map[string]any for records and messages, ISO text for dates, int64 and
// float64 for numbers. Bytes remain bytes.
func ToGo(v any) any {
	switch v := plainGo(v).(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = ToGo(v[i])
		}
		return out
	case *Record:
		out := make(map[string]any, v.Len())
		for _, f := range v.fields {
			out[f.Name] = ToGo(f.Value)
		}
		return out
	case chat.Message:
		return ToGo(messageRecord(v))
	case UnsetType:
		return nil
	case ParseCell:
		return string(v)
	case Date, DateTime, Time:
		return Text(v)
	case chat.Role:
		return string(v)
	default:
		return v
	}
}

// FromGo converts the result of encoding/json or of a driver to a run-time value
// without a declared type.
func FromGo(v any) any { return fromGo(v) }

// Equal reports whether two values are equal. Numbers of different types are not.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && (sameList(a, b) || slices.EqualFunc(a, b, Equal))
	case *Record:
		b, ok := b.(*Record)
		return ok && (a == b || a.typ == b.typ && slices.EqualFunc(a.fields, b.fields, func(x, y Field) bool {
			return x.Name == y.Name && Equal(x.Value, y.Value)
		}))
	case DateTime:
		b, ok := b.(DateTime)
		return ok && a.String() == b.String()
	}
	return reflect.DeepEqual(a, b)
}

// sameList reports whether two lists share their memory, as rows made from the same
// row do.
func sameList(a, b []any) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

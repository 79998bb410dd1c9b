package value

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Error reports which part of a value does not fit its declared type.
type Error struct {
	Path   string // location in the value, such as items[2].price; empty for the whole
	Reason string // what is wrong there
}

// Error returns the message on one line.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Within returns the error with a part of the value before its path: the name of a field, or [2].
func (e *Error) Within(part string) *Error {
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		part += "."
	}
	return &Error{Path: part + e.Path, Reason: e.Reason}
}

// Coerce converts v to a declared type: numbers from numeric text, booleans from
// yes and no, dates from ISO text, records from objects, but never text from
// numbers. v may be a run-time value, the result of encoding/json, a ParseCell, or
// a plain Go value. null is accepted if the type is optional. The error is an
// *Error.
func Coerce(t spec.Type, v any) (any, error) {
	out, err := coerce(t, plainGo(v))
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Assign is like Coerce for a variable, which may be optional itself; Unset becomes
// null.
func Assign(v *spec.Variable, x any) (any, error) {
	t := v.Type
	t.Optional = v.IsOptional()
	return Coerce(t, x)
}

// coerce returns *Error, so that a nil *Error is not converted to a non-nil error.
func coerce(t spec.Type, v any) (any, *Error) {
	if cell, ok := v.(ParseCell); ok {
		v = cell.open(t)
	}
	switch {
	case v == nil || v == Unset:
		if t.Optional || t.Name == anyType {
			return nil, nil
		}
		return nil, mismatch(t, v)
	case t.Elem != nil:
		return coerceList(t, v)
	case t.Custom != nil:
		return coerceCustom(t.Custom, v)
	}
	if convert := scalar(t.Name); convert != nil {
		if d, ok := v.(Decimal); ok {
			convert = func(any) (any, bool) { return coerceDecimal(t.Name, d) }
		}
		if x, ok := convert(v); ok {
			return x, nil
		}
		return nil, mismatch(t, v)
	}
	return coerceDomain(t, v)
}

// coerceList coerces each item; an error has the index of the item.
func coerceList(t spec.Type, v any) (any, *Error) {
	items, ok := v.([]any)
	if !ok {
		return nil, mismatch(t, v)
	}
	if t.Elem.Is("text") && areTexts(items) {
		return items, nil
	}
	out := make([]any, len(items))
	for i, item := range items {
		x, err := coerce(*t.Elem, plainGo(item))
		if err != nil {
			return nil, err.at("[" + strconv.Itoa(i) + "]")
		}
		out[i] = x
	}
	return out, nil
}

// areTexts reports whether all items are strings. Such a list needs no copy, as
// values are immutable.
func areTexts(items []any) bool {
	for _, item := range items {
		if _, ok := item.(string); !ok {
			return false
		}
	}
	return true
}

// open converts the text of a cell to the input of Coerce for the type.
func (c ParseCell) open(t spec.Type) any {
	text := strings.TrimSpace(string(c))
	isText := t.Elem == nil && t.Custom == nil && (t.Name == "text" || t.Name == chatMessage || t.IsMedia())
	switch {
	case text == "" && t.Optional && !isText:
		return nil
	case !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{"):
		return string(c)
	case t.IsMedia() || t.Is(chatMessage):
		if !mayMean(text, t) {
			return string(c)
		}
		if v, err := Parse(text); err == nil {
			if r, isRecord := v.(*Record); isRecord && r.means(t) {
				return r
			}
		}
	case t.Elem != nil || t.IsRecord() || t.Name == anyType:
		if v, err := Parse(text); err == nil {
			return v
		}
	}
	return string(c)
}

// mayMean reports whether the text of a cell may be an object that means reports. It is not
// parsed if it has none of the names, not even with escapes.
func mayMean(text string, t spec.Type) bool {
	name := `"base64"`
	if t.Is(chatMessage) {
		name = `"blocks"`
	}
	return text[0] == '{' && (strings.Contains(text, name) || strings.Contains(text, `\u`))
}

// means reports whether an object in a cell is a value of the type, and not its text:
// bytes that are not text, or a message.
func (r *Record) means(t spec.Type) bool {
	if t.Is(chatMessage) {
		return r.has("role") && r.has("blocks")
	}
	return t.IsMedia() && r.Len() == 1 && r.has("base64")
}

func (r *Record) has(name string) bool {
	_, ok := r.Get(name)
	return ok
}

// at prepends a field or an index to the path.
func (e *Error) at(part string) *Error {
	switch {
	case e.Path == "":
		e.Path = part
	case strings.HasPrefix(e.Path, "["):
		e.Path = part + e.Path
	default:
		e.Path = part + "." + e.Path
	}
	return e
}

// mismatch reports the expected type and the value.
func mismatch(t spec.Type, v any) *Error {
	want := wanted(t)
	if s, isText := v.(string); isText && t.Elem == nil && (t.Name == "date" || t.Name == "datetime") && isCompactDate(s) {
		want += " with separators, such as 2024-02-29"
	}
	return &Error{Reason: fmt.Sprintf("expected %s, got %s", want, Describe(v))}
}

// wanted names a type for messages.
func wanted(t spec.Type) string {
	t.Optional = false
	switch {
	case t.Elem == nil && t.Name == anyType:
		return "a value"
	case t.Elem == nil && t.Name == mapType:
		return "an object"
	}
	return t.String()
}

// maxQuoted is the number of characters of a string in a message.
const maxQuoted = 40

// Describe describes a value for a message, briefly and on one line.
func Describe(v any) string {
	switch v := plainGo(v).(type) {
	case nil:
		return "null"
	case UnsetType:
		return "nothing"
	case string:
		return quote(v)
	case ParseCell:
		if strings.TrimSpace(string(v)) == "" {
			return "an empty cell"
		}
		return quote(string(v))
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case chat.Message:
		return "a chat message"
	case *Record:
		if v.typ != "" {
			return "a " + v.typ
		}
		return "an object"
	case Date, DateTime, Time:
		return "the " + kindOf(v) + " " + Text(v)
	case Decimal:
		return "the decimal " + string(v)
	case bool, int64, float64, json.Number:
		return Text(v)
	}
	return "something that is not a value"
}

func kindOf(v any) string {
	switch v.(type) {
	case Date:
		return "date"
	case DateTime:
		return "datetime"
	}
	return "time"
}

// quote quotes the beginning of a string.
func quote(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		s = string(runes[:maxQuoted]) + "…"
	}
	return strconv.QuoteToGraphic(s)
}

// Decimal is the digits of an exact decimal number, as Parquet files and databases
// have them: 12.50. Coerce makes it a text with these digits, an int, or a float if
// the float has the same value in its shortest form; a Decimal is never rounded.
type Decimal string

// number returns the smallest number type that holds the decimal exactly, or the decimal.
func (d Decimal) number() any {
	if strings.ContainsAny(string(d), ".eE") {
		if _, exact := d.float(); !exact {
			return d
		}
	}
	return number(string(d))
}

// float returns the float whose shortest form is the decimal, and whether there is one.
func (d Decimal) float() (float64, bool) {
	f, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return f, true // NaN
	}
	short, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && exact.Cmp(short) == 0
}

// coerceDecimal converts a decimal to a scalar type.
func coerceDecimal(name string, d Decimal) (any, bool) {
	switch name {
	case "text":
		return string(d), true
	case "int":
		return parseInt(string(d))
	case "float":
		return d.float()
	}
	if x, isDecimal := d.number().(Decimal); isDecimal {
		return x, name == anyType
	}
	return scalar(name)(d.number())
}

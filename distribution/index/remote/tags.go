package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/filter"
)

// OwnTag is the tag of all entries that this module wrote.
const OwnTag = "own"

// Some servers compare only fields that the index declares, each of one type. There
// conditions on any metadata are made of tags of one field: a tag is the kind of a
// condition and a hash of the field and the value. They have only letters and digits, which
// need no escapes in queries.
const (
	existsKind  = "x" // the field has a value
	valueKind   = "v" // the field equals the value
	numberKind  = "n" // the field is a number whose code begins with these digits
	exactNumber = 1 << 53
)

// Tags returns the tags of metadata.
func Tags(metadata map[string]any) []string {
	return addTags([]string{OwnTag}, "", metadata)
}

// addTags adds the tags of a mapping, whose path ends with a dot if it is not empty.
func addTags(list []string, path string, values map[string]any) []string {
	for key, v := range values {
		if strings.Contains(key, ".") {
			continue // no condition can name it
		}
		field := path + key
		items, isList := v.([]any)
		if v == nil || isList && len(items) == 0 {
			continue
		}
		list = append(list, hashTag(existsKind, field, ""))
		if inner, ok := v.(map[string]any); ok {
			list = addTags(list, field+".", inner)
			continue
		}
		if !isList {
			items = []any{v}
		}
		for _, item := range items {
			list = append(list, valueTags(field, item)...)
		}
	}
	return list
}

// valueTags returns the tags of a value that is not a list.
func valueTags(field string, v any) []string {
	if n, ok := v.(int); ok {
		v = int64(n)
	}
	text, ok := canonical(v)
	if !ok {
		return nil
	}
	list := []string{hashTag(valueKind, field, text)}
	if n, ok := asFloat(v); ok {
		code, prefix := digits(orderedCode(n)), hashTag(numberKind, field, "")
		for i := range code {
			list = append(list, prefix+code[:i+1])
		}
	}
	return list
}

// hashTag returns a tag of a field and a value.
func hashTag(kind, field, value string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + field + "\x00" + value))
	const size = 8 // bytes; more make longer tags, and results are checked
	return kind + hex.EncodeToString(sum[:size])
}

// canonical returns the text of a value, the same for equal numbers.
func canonical(v any) (string, bool) {
	if n, ok := asFloat(v); ok {
		return "n" + strconv.FormatFloat(n, 'g', -1, 64), true
	}
	switch v := v.(type) {
	case string:
		return "s" + v, true
	case bool:
		return "b" + strconv.FormatBool(v), true
	}
	return "", false
}

// asFloat returns a number. Zero has no sign.
func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n + 0, true
	}
	return 0, false
}

// orderedCode returns a number that sorts like the floating-point number.
func orderedCode(f float64) uint64 {
	if f == 0 {
		f = 0
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

// codeDigits is the number of hexadecimal digits of a code.
const codeDigits = 16

func digits(code uint64) string {
	text := strconv.FormatUint(code, 16)
	return strings.Repeat("0", codeDigits-len(text)) + text
}

// cover adds the shortest beginnings of codes that the codes from low to high have, and no
// others: of those that begin with the count digits of begin.
func cover(list []string, begin uint64, count int, low, high uint64) []string {
	shift := 4 * (codeDigits - count)
	first := begin << shift
	last := first | (1<<shift - 1)
	switch {
	case last < low || first > high:
		return list
	case count > 0 && low <= first && last <= high:
		return append(list, digits(first)[:count])
	}
	for digit := range uint64(16) {
		list = cover(list, begin<<4|digit, count+1, low, high)
	}
	return list
}

// TagConditions makes the conditions of a Dialect from tags. The conditions are exact.
type TagConditions[Q any] struct {
	Has func(anyOf ...string) Q // returns the condition that an entry has any of the tags
}

// Compare compares numbers, and texts and booleans by equality.
func (t TagConditions[Q]) Compare(c filter.Compare) (q Q, ok bool) {
	if c.Op == filter.Equal {
		return t.In(filter.In{Field: c.Field, Values: []any{c.Value}})
	}
	n, isNumber := asFloat(c.Value)
	if !isNumber || math.Abs(n) >= exactNumber {
		return q, false
	}
	low, high := orderedCode(-math.MaxFloat64), orderedCode(math.MaxFloat64)
	code := orderedCode(n)
	switch c.Op {
	case filter.Less:
		high = code - 1
	case filter.LessOrEqual:
		high = code
	case filter.Greater:
		low = code + 1
	case filter.GreaterOrEqual:
		low = code
	}
	prefix := hashTag(numberKind, c.Field, "")
	begins := cover(nil, 0, 0, low, high)
	for i := range begins {
		begins[i] = prefix + begins[i]
	}
	return t.Has(begins...), true
}

// In compares a field with several values.
func (t TagConditions[Q]) In(c filter.In) (q Q, ok bool) {
	var of []string
	for _, v := range c.Values {
		if n, isNumber := asFloat(v); isNumber && math.Abs(n) >= exactNumber {
			return q, false // numbers of this size may differ and have one code
		}
		text, known := canonical(v)
		if !known {
			return q, false
		}
		of = append(of, hashTag(valueKind, c.Field, text))
	}
	return t.Has(of...), true
}

// Exists requires a value.
func (t TagConditions[Q]) Exists(c filter.Exists) (q Q, ok bool) {
	return t.Has(hashTag(existsKind, c.Field, "")), true
}

// Exact is true: see Tags.
func (TagConditions[Q]) Exact() bool { return true }

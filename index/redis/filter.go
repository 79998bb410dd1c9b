package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/index/internal/remote"
	"github.com/qtype-dev/qtype/internal/filter"
)

// The server compares only fields that the index declares, each of one type. So conditions
// on any metadata are made of tags of one field: a tag is the kind of a condition and a
// hash of the field and the value. They have only letters and digits, which need no
// escapes in queries.
const (
	ownTag      = "own" // of all entries that this module wrote
	existsKind  = "x"   // the field has a value
	valueKind   = "v"   // the field equals the value
	numberKind  = "n"   // the field is a number whose code begins with these digits
	exactNumber = 1 << 53
)

// tags returns the tags of metadata.
func tags(metadata map[string]any) []string {
	return addTags([]string{ownTag}, "", metadata)
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

// orderedCode returns a number whose order is that of the floating-point numbers.
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

// condition returns a query that all entries satisfy that satisfy the filter. Entries that
// other programs wrote have no tags; they are checked here.
func (s *state) condition(f filter.Filter) remote.Translated[string] {
	if !s.own {
		return remote.Translated[string]{Exact: f == nil}
	}
	t := remote.Translate(f, dialect{})
	if t.Found {
		t.Query = "(" + t.Query + "|(-" + tagQuery(ownTag) + "))"
	}
	return t
}

// tagQuery returns the condition that an entry has any of the tags.
func tagQuery(of ...string) string {
	return "(@" + tagsField + ":{" + strings.Join(of, "|") + "})"
}

// dialect makes conditions in parentheses.
type dialect struct{}

// And requires all conditions.
func (dialect) And(of []string) string { return "(" + strings.Join(of, " ") + ")" }

// Or requires any condition.
func (dialect) Or(of []string) string { return "(" + strings.Join(of, "|") + ")" }

// Not requires that a condition is not satisfied.
func (dialect) Not(of string) string { return "(-" + of + ")" }

// Compare compares numbers, and texts and booleans by equality.
func (d dialect) Compare(c filter.Compare) (string, bool) {
	if c.Op == filter.Equal {
		return d.In(filter.In{Field: c.Field, Values: []any{c.Value}})
	}
	n, ok := asFloat(c.Value)
	if !ok || math.Abs(n) >= exactNumber {
		return "", false
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
	return tagQuery(begins...), true
}

// In compares a field with several values.
func (dialect) In(c filter.In) (string, bool) {
	var of []string
	for _, v := range c.Values {
		if n, ok := asFloat(v); ok && math.Abs(n) >= exactNumber {
			return "", false // numbers of this size may differ and have one code
		}
		text, ok := canonical(v)
		if !ok {
			return "", false
		}
		of = append(of, hashTag(valueKind, c.Field, text))
	}
	return tagQuery(of...), true
}

// Exists requires a value.
func (dialect) Exists(c filter.Exists) (string, bool) {
	return tagQuery(hashTag(existsKind, c.Field, "")), true
}

// Exact is true: see tags.
func (dialect) Exact() bool { return true }

package loader

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// satisfies reports whether a value has the properties of a rule, the tag `validate` of
// its field: constraints separated by commas. They are gt, gte, lt, lte, min and max for the
// size of the value, oneof for its text, and omitempty, which accepts a value that is not
// set. A nil pointer satisfies only rules with omitempty.
func satisfies(v reflect.Value, rule string) bool {
	constraints := strings.Split(rule, ",")
	optional := constraints[0] == "omitempty"
	if optional {
		constraints = constraints[1:]
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return optional
		}
		v = v.Elem()
	} else if optional && v.IsZero() {
		return true
	}
	return !slices.ContainsFunc(constraints, func(c string) bool {
		name, param, _ := strings.Cut(c, "=")
		return !satisfiesOne(v, name, param)
	})
}

// satisfiesOne checks a single constraint. Constraints of other names are not of values.
func satisfiesOne(v reflect.Value, name, param string) bool {
	if name == "oneof" {
		return slices.Contains(strings.Fields(param), shownValue(v))
	}
	bound, err := strconv.ParseFloat(param, 64)
	if err != nil {
		return true
	}
	size := sizeOf(v)
	switch name {
	case "gt":
		return size > bound
	case "gte", "min":
		return size >= bound
	case "lt":
		return size < bound
	case "lte", "max":
		return size <= bound
	}
	return true
}

// shownValue returns a text or a whole number as oneof lists it.
func shownValue(v reflect.Value) string {
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	return v.String()
}

// sizeOf returns what bounds limit: a number itself, the characters of a text, the items
// of a list or of an object.
func sizeOf(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.String:
		return float64(utf8.RuneCountInString(v.String()))
	}
	return float64(v.Len())
}

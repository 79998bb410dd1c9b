package loader

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fitsRule reports whether a value fits the rule of a tag `validate`. It knows the rules that package
// spec uses, as package validator of go-playground reads them; that package with what it imports would be a megabyte.
func fitsRule(v reflect.Value, rule string) bool {
	given := false // by a pointer: its value is not that of an absent key
	for (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		v, given = v.Elem(), true
	}
	for part := range strings.SplitSeq(rule, ",") {
		name, param, _ := strings.Cut(part, "=")
		switch {
		case name == "omitempty" && !given && isUnset(v):
			return true
		case name == "omitempty":
		case name == "oneof" && slices.Contains(strings.Fields(param), textOf(v)):
		case name == "oneof" || !inRange(v, name, param):
			return false
		}
	}
	return true
}

// isUnset reports whether a value is that of an absent key.
func isUnset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// textOf returns a text or a number as oneof compares it.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

// inRange compares the number, or the length of a text or list, with a bound.
func inRange(v reflect.Value, name, bound string) bool {
	limit, err := strconv.ParseFloat(bound, 64)
	size, ok := magnitude(v)
	if err != nil || !ok {
		return false // not a rule of this type; TestRules_Tags finds it
	}
	order := cmp.Compare(size, limit)
	switch name {
	case "gt":
		return order > 0
	case "gte", "min":
		return order >= 0
	case "lt":
		return order < 0
	case "lte", "max":
		return order <= 0
	}
	return false
}

// magnitude returns what a bound is compared with.
func magnitude(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	case v.Kind() == reflect.String:
		return float64(len([]rune(v.String()))), true
	case v.Kind() == reflect.Slice, v.Kind() == reflect.Map:
		return float64(v.Len()), true
	}
	return 0, false
}

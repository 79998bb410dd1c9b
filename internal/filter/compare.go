package filter

import (
	"cmp"
	"math"
	"strings"
)

// unordered is the order of values that are comparable but not equal, without an order.
const unordered = 2

// compare returns the order of two values, -1, 0, 1 or unordered. It reports false if
// they have different types.
func compare(a, b any) (order int, comparable bool) {
	switch y := b.(type) {
	case string:
		x, ok := a.(string)
		return strings.Compare(x, y), ok
	case bool:
		x, ok := a.(bool)
		if x != y {
			return unordered, ok
		}
		return 0, ok
	case int64:
		if x, ok := whole(a); ok {
			return cmp.Compare(x, y), true
		}
		return compareFloat(a, float64(y))
	case float64:
		return compareFloat(a, y)
	}
	return 0, false
}

func compareFloat(a any, y float64) (int, bool) {
	x, ok := number(a)
	if !ok || math.IsNaN(x) {
		return 0, false
	}
	return cmp.Compare(x, y), true
}

// whole returns the value of an integer.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// number returns the value of a number.
func number(v any) (float64, bool) {
	if n, ok := whole(v); ok {
		return float64(n), true
	}
	f, ok := v.(float64)
	return f, ok
}

package jsonpath

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ohler55/ojg/jp"

	"github.com/qtype-dev/qtype/spec/value"
)

// function returns the results for one value; none if it does not apply.
type function func(v any) ([]any, error)

// functionOf returns the function between backquotes.
func functionOf(text string) (function, error) {
	name, args, called := strings.Cut(strings.TrimSpace(text), "(")
	if called {
		if !strings.HasSuffix(args, ")") {
			return nil, fmt.Errorf("function `%s`: missing )", text)
		}
		args = strings.TrimSuffix(args, ")")
	}
	switch name {
	case "len":
		return length, nil
	case "sorted":
		return sorted, nil
	case "keys":
		return keys, nil
	case "this":
		return func(v any) ([]any, error) { return []any{v}, nil }, nil
	case "str":
		return textOf, nil
	case "split":
		return splitting(args)
	case "sub":
		return substituting(args)
	}
	return nil, fmt.Errorf("unknown function `%s`; the functions are len, sorted, keys, this, str(), split(SEPARATOR, INDEX, MAX), sub(/PATTERN/, TEXT)", text)
}

// namesOf returns the names of an object.
func namesOf(v any) (names []string, ok bool) {
	switch v := v.(type) {
	case jp.Keyed:
		return v.Keys(), true
	case map[string]any:
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, true
	}
	return nil, false
}

func length(v any) ([]any, error) {
	switch v := v.(type) {
	case string:
		return []any{int64(utf8.RuneCountInString(v))}, nil
	case []any:
		return []any{int64(len(v))}, nil
	}
	if names, ok := namesOf(v); ok {
		return []any{int64(len(names))}, nil
	}
	return nil, nil
}

func keys(v any) ([]any, error) {
	names, _ := namesOf(v)
	all := make([]any, len(names))
	for i := range names {
		all[i] = names[i]
	}
	return all, nil
}

// sorted sorts a list of numbers or strings, or the names of an object.
func sorted(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		if list, _ = keys(v); list == nil {
			return nil, nil
		}
	}
	list = slices.Clone(list)
	var sortErr error
	slices.SortStableFunc(list, func(a, b any) int {
		x, number := asFloat(a)
		y, number2 := asFloat(b)
		s, text := a.(string)
		t, text2 := b.(string)
		switch {
		case number && number2:
			return cmp.Compare(x, y)
		case text && text2:
			return strings.Compare(s, t)
		}
		sortErr = fmt.Errorf("cannot sort values that are neither all numbers nor all strings")
		return 0
	})
	return []any{list}, sortErr
}

// textOf formats a string, a number or a boolean.
func textOf(v any) ([]any, error) {
	switch v := v.(type) {
	case string:
		return []any{v}, nil
	case int64, bool, float64:
		return []any{value.Text(v)}, nil
	}
	return nil, fmt.Errorf("expected a string, a number or a boolean")
}

// splitting parses split(SEPARATOR, INDEX, MAX). INDEX is the part to return,
// negative from the end, * for all; MAX limits the number of splits.
func splitting(args string) (function, error) {
	wrong := fmt.Errorf("function `split(%s)`: expected split(SEPARATOR, INDEX, MAX)", args)
	last := strings.LastIndexByte(args, ',')
	middle := strings.LastIndexByte(args[:max(last, 0)], ',')
	if last <= 0 || middle <= 0 {
		return nil, wrong
	}
	separator := strings.Trim(strings.TrimSpace(args[:middle]), `'"`)
	wanted := strings.TrimSpace(args[middle+1 : last])
	limit, err := strconv.Atoi(strings.TrimSpace(args[last+1:]))
	index, err2 := strconv.Atoi(wanted)
	if separator == "" || err != nil || err2 != nil && wanted != "*" {
		return nil, wrong
	}
	if limit >= 0 {
		limit++ // Go limits the number of parts
	}
	return func(v any) ([]any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, nil
		}
		var parts []any
		for _, part := range strings.SplitN(s, separator, limit) {
			parts = append(parts, part)
		}
		i := index
		if i < 0 {
			i += len(parts)
		}
		switch {
		case wanted == "*":
			return parts, nil
		case i < 0 || i >= len(parts):
			return nil, nil
		}
		return parts[i : i+1], nil
	}, nil
}

// substituting parses sub(/PATTERN/, TEXT), where \1 is the first group.
func substituting(args string) (function, error) {
	args = strings.TrimSpace(args)
	end := strings.LastIndex(args, "/")
	_, with, found := strings.Cut(args[max(end, 0):], ",")
	if end <= 0 || args[0] != '/' || !found {
		return nil, fmt.Errorf("function `sub(%s)`: expected sub(/PATTERN/, TEXT)", args)
	}
	pattern, err := regexp.Compile(args[1:end])
	if err != nil {
		return nil, fmt.Errorf("function `sub(%s)`: %w", args, err)
	}
	with = strings.Trim(strings.TrimSpace(with), `'"`)
	with = strings.ReplaceAll(strings.ReplaceAll(with, "$", "$$"), `\\`, `\`)
	for i := range 10 {
		with = strings.ReplaceAll(with, `\`+strconv.Itoa(i), "${"+strconv.Itoa(i)+"}")
	}
	return func(v any) ([]any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, nil
		}
		return []any{pattern.ReplaceAllString(s, with)}, nil
	}, nil
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// evaluate computes one operation. Integers remain integers, except for divisions
// and results beyond 64 bits.
func evaluate(sign byte, a, b any) (any, bool) {
	if s, ok := a.(string); ok && sign == '+' {
		t, ok := b.(string)
		return s + t, ok
	}
	if s, ok := a.([]any); ok && sign == '+' {
		t, ok := b.([]any)
		return slices.Concat(s, t), ok
	}
	x, ok := asFloat(a)
	y, ok2 := asFloat(b)
	if !ok || !ok2 {
		return nil, false
	}
	i, whole := a.(int64)
	j, whole2 := b.(int64)
	if whole && whole2 {
		if n, fits := whole64(sign, i, j); fits {
			return n, true
		}
	}
	switch sign {
	case '+':
		return x + y, true
	case '-':
		return x - y, true
	case '*':
		return x * y, true
	}
	return x / y, y != 0
}

// whole64 computes an operation of integers and reports whether the result has 64
// bits.
func whole64(sign byte, a, b int64) (n int64, fits bool) {
	switch sign {
	case '+':
		n = a + b
		return n, (n > a) == (b > 0)
	case '-':
		n = a - b
		return n, (n < a) == (b > 0)
	case '*':
		n = a * b
		return n, a == 0 || n/a == b && (a != -1 || b != math.MinInt64)
	}
	return 0, false
}

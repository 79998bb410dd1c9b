package filter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// maxDepth bounds how deep conditions are nested.
const maxDepth = 32

// The keys of a mapping of conditions that are not fields.
const (
	keyAnd = "and"
	keyOr  = "or"
	keyNot = "not"
)

// The operators that are made of other conditions.
const (
	opNotEqual = "ne"
	opIn       = "in"
	opNotIn    = "not_in"
	opExists   = "exists"
)

// operators lists the operators, as messages propose them.
func operators() []string {
	return []string{string(Equal), opNotEqual, string(Greater), string(GreaterOrEqual), string(Less), string(LessOrEqual), opIn, opNotIn, opExists}
}

// Error is an invalid part of `filters`.
type Error struct {
	Path    []any  // the keys (string) and the positions in lists (int, from 0) that lead to the invalid part
	OfKey   bool   // the last key is wrong, not its value
	Message string // what is wrong, without the path
	Hint    string // how to fix it; may be empty
}

// Error returns the message with its path.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("filters")
	for _, part := range e.Path {
		if key, ok := part.(string); ok {
			b.WriteString("." + key)
		} else {
			fmt.Fprintf(&b, "[%d]", part)
		}
	}
	b.WriteString(": " + e.Message)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Parse reads the value of `filters`:
//
//	{lang: en, year: {gte: 2020, lt: 2024}, tag: {in: [a, b]}, draft: {exists: false},
//	 name: {ne: x}, or: [{…}, {…}], not: {…}}
//
// A field with a value must equal it, one with a list any of its items. Several keys, and
// several operators of a field, must all be satisfied. The filter is nil without any
// condition. The error is an *Error.
func Parse(filters map[string]any) (Filter, error) {
	if len(filters) == 0 {
		return nil, nil
	}
	f, err := (&parser{}).conditions(filters)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// parser knows where in the value it is.
type parser struct{ path []any }

func (p *parser) fail(hint, format string, args ...any) *Error {
	return &Error{Path: slices.Clone(p.path), Message: fmt.Sprintf(format, args...), Hint: hint}
}

func (p *parser) failKey(hint, format string, args ...any) *Error {
	err := p.fail(hint, format, args...)
	err.OfKey = true
	return err
}

// at reads the value of a key or an item.
func (p *parser) at(part any, read func() (Filter, *Error)) (Filter, *Error) {
	p.path = append(p.path, part)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if len(p.path) > 2*maxDepth {
		return nil, p.fail("", "the conditions are nested deeper than %d levels", maxDepth)
	}
	return read()
}

// conditions reads a mapping of fields and combinations.
func (p *parser) conditions(m map[string]any) (Filter, *Error) {
	if len(m) == 0 {
		return nil, p.fail("", "expected at least one condition")
	}
	return p.all(m, func(key string, v any) (Filter, *Error) {
		switch key {
		case keyAnd, keyOr:
			return p.list(key, v)
		case keyNot:
			inner, ok := v.(map[string]any)
			if !ok {
				return nil, p.fail("", "expected a mapping of conditions, got %s", textfmt.Kind(v))
			}
			f, err := p.conditions(inner)
			return Not{f}, err
		}
		return p.field(key, v)
	})
}

// all reads the values of a mapping, in the order of their keys, as conditions that must
// all be satisfied.
func (p *parser) all(m map[string]any, read func(key string, v any) (Filter, *Error)) (Filter, *Error) {
	var of []Filter
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f, err := p.at(key, func() (Filter, *Error) { return read(key, m[key]) })
		if err != nil {
			return nil, err
		}
		of = append(of, f)
	}
	if len(of) == 1 {
		return of[0], nil
	}
	return And{of}, nil
}

// list reads the value of `and` or `or`.
func (p *parser) list(key string, v any) (Filter, *Error) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 {
		return nil, p.fail("", "expected a list of conditions, got %s", textfmt.Kind(v))
	}
	of := make([]Filter, len(items))
	for i, item := range items {
		f, err := p.at(i, func() (Filter, *Error) {
			m, ok := item.(map[string]any)
			if !ok {
				return nil, p.fail("", "expected a mapping of conditions, got %s", textfmt.Kind(item))
			}
			return p.conditions(m)
		})
		if err != nil {
			return nil, err
		}
		of[i] = f
	}
	if key == keyAnd {
		return And{of}, nil
	}
	return Or{of}, nil
}

// field reads the condition of a field.
func (p *parser) field(field string, v any) (Filter, *Error) {
	if slices.Contains(Path(field), "") {
		return nil, p.failKey("", "a field has a name, or names with a dot between two")
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			return nil, p.fail("the operators are "+strings.Join(operators(), ", "), "expected a value or operators, got an empty mapping")
		}
		return p.all(x, func(op string, v any) (Filter, *Error) { return p.operator(field, op, v) })
	case []any:
		return p.in(field, v)
	}
	value, err := p.value(v)
	return Compare{field, Equal, value}, err
}

// operator reads one operator of a field.
func (p *parser) operator(field, op string, v any) (Filter, *Error) {
	switch op {
	case string(Equal), opNotEqual:
		value, err := p.value(v)
		return negated(op == opNotEqual, Compare{field, Equal, value}), err
	case string(Less), string(LessOrEqual), string(Greater), string(GreaterOrEqual):
		value, err := p.value(v)
		if _, boolean := value.(bool); boolean && err == nil {
			err = p.fail("", "expected a number or text, got a boolean")
		}
		return Compare{field, Op(op), value}, err
	case opIn, opNotIn:
		f, err := p.in(field, v)
		return negated(op == opNotIn, f), err
	case opExists:
		want, ok := v.(bool)
		if !ok {
			return nil, p.fail("", "expected true or false, got %s", textfmt.Kind(v))
		}
		return negated(!want, Exists{field}), nil
	}
	hint := "the operators are " + strings.Join(operators(), ", ") + "; a key of a mapping is written " + field + "." + op
	if near := diag.Nearest(op, operators()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, p.failKey(hint, "unknown operator %q", op)
}

func negated(not bool, f Filter) Filter {
	if not {
		return Not{f}
	}
	return f
}

// in reads a list of values.
func (p *parser) in(field string, v any) (Filter, *Error) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 {
		return nil, p.fail("", "expected a list of values, got %s", textfmt.Kind(v))
	}
	values := make([]any, len(items))
	for i, item := range items {
		value, err := p.value(item)
		if err != nil {
			err.Path = append(err.Path, i)
			return nil, err
		}
		values[i] = value
	}
	return In{field, values}, nil
}

// value reads a value to compare with.
func (p *parser) value(v any) (any, *Error) {
	switch x := v.(type) {
	case string, bool, int64:
		return v, nil
	case int:
		return int64(x), nil
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return v, nil
		}
		return nil, p.fail("", "expected a finite number")
	case nil:
		return nil, p.fail("for a field without a value, write {exists: false}", "expected a value, got null")
	}
	return nil, p.fail("", "expected text, a number or a boolean, got %s", textfmt.Kind(v))
}

// Package filter checks metadata against the conditions of the key `filters`.
package filter

import "strings"

// Filter is a condition on metadata. Stores translate it to their query language by a
// type switch over the types of this package; Match is the reference implementation.
// A condition is true or false, never unknown: a comparison of a missing field is false,
// and its negation is true.
type Filter interface {
	// Match reports whether metadata satisfies the condition.
	Match(metadata map[string]any) bool
}

// And is satisfied if all of its conditions are.
type And struct {
	Of []Filter // at least one
}

// Or is satisfied if any of its conditions is.
type Or struct {
	Of []Filter // at least one
}

// Not is satisfied if its condition is not.
type Not struct {
	Of Filter // the condition
}

// Compare is satisfied if the field has a value of the type of Value for which the
// comparison is true. Of a list, any item counts. Numbers are compared by their value,
// whether whole or not; text by its bytes; booleans only with Equal.
type Compare struct {
	Field string // see Path
	Op    Op     // the comparison
	Value any    // string, int64, float64 or bool; for all but Equal not bool
}

// In is satisfied if the field, or an item of its list, equals one of the values.
type In struct {
	Field  string // see Path
	Values []any  // at least one; each a string, int64, float64 or bool
}

// Exists is satisfied if the field has a value other than null and an empty list.
type Exists struct {
	Field string // see Path
}

// Op is a comparison.
type Op string

// The comparisons, by their names in `filters`. The other names are made of these: ne is
// Not of Equal, in and not_in are In and Not of In.
const (
	Equal          Op = "eq"
	Less           Op = "lt"
	LessOrEqual    Op = "lte"
	Greater        Op = "gt"
	GreaterOrEqual Op = "gte"
)

// Path returns the keys that lead to a field: author.name is the key name of the mapping
// in the key author.
func Path(field string) []string { return strings.Split(field, ".") }

// Match reports whether all conditions are satisfied.
func (f And) Match(metadata map[string]any) bool {
	for _, c := range f.Of {
		if !c.Match(metadata) {
			return false
		}
	}
	return true
}

// Match reports whether any condition is satisfied.
func (f Or) Match(metadata map[string]any) bool {
	for _, c := range f.Of {
		if c.Match(metadata) {
			return true
		}
	}
	return false
}

// Match reports whether the condition is not satisfied.
func (f Not) Match(metadata map[string]any) bool { return !f.Of.Match(metadata) }

// Match compares the values of the field.
func (f Compare) Match(metadata map[string]any) bool {
	return anyValue(metadata, f.Field, func(v any) bool {
		order, comparable := compare(v, f.Value)
		return comparable && f.Op.holds(order)
	})
}

// Match looks for a value of the field among the values.
func (f In) Match(metadata map[string]any) bool {
	return anyValue(metadata, f.Field, func(v any) bool {
		for _, wanted := range f.Values {
			if order, comparable := compare(v, wanted); comparable && order == 0 {
				return true
			}
		}
		return false
	})
}

// Match looks for a value of the field.
func (f Exists) Match(metadata map[string]any) bool {
	v := lookup(metadata, f.Field)
	items, list := v.([]any)
	return v != nil && (!list || len(items) > 0)
}

// holds reports whether the comparison is true for two values in this order.
func (o Op) holds(order int) bool {
	switch o {
	case Equal:
		return order == 0
	case Less:
		return order == -1
	case LessOrEqual:
		return order == -1 || order == 0
	case Greater:
		return order == 1
	case GreaterOrEqual:
		return order == 1 || order == 0
	}
	return false
}

// lookup returns the value of a field; nil for none.
func lookup(metadata map[string]any, field string) any {
	for {
		key, rest, nested := strings.Cut(field, ".")
		v := metadata[key]
		if !nested {
			return v
		}
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		metadata, field = inner, rest
	}
}

// anyValue reports whether a value of the field, or any item of its list, satisfies a
// condition.
func anyValue(metadata map[string]any, field string, satisfies func(any) bool) bool {
	v := lookup(metadata, field)
	items, ok := v.([]any)
	if !ok {
		return satisfies(v)
	}
	for _, item := range items {
		if satisfies(item) {
			return true
		}
	}
	return false
}

package chroma

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// listKey is the key that marks a record whose field is a list. Chroma has only single
// values; lists and mappings are in the JSON of the entry.
func listKey(field string) string { return "_qtype_list:" + field }

// metadataOf returns the metadata of a record: single values, those of mappings by their
// path, and marks of lists.
func metadataOf(e index.Entry) (object, error) {
	all, err := remote.Metadata(e, false)
	if err != nil {
		return nil, err
	}
	flat := make(object, len(all))
	flatten(flat, "", all)
	return flat, nil
}

func flatten(into object, prefix string, values map[string]any) {
	for key, v := range values {
		key = prefix + key
		switch v := v.(type) {
		case nil:
		case map[string]any:
			flatten(into, key+".", v)
		case []any:
			if len(v) > 0 {
				into[listKey(key)] = true
			}
		case float64:
			into[key] = number(v)
		default:
			into[key] = v
		}
	}
}

// number keeps a float from becoming a whole number of JSON, which Chroma has as another
// type.
func number(v float64) any {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return json.RawMessage(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return v
}

// dialect makes Chroma's conditions. They are never exact, because of lists.
type dialect struct{}

// And requires all conditions.
func (dialect) And(of []object) object { return combined("$and", of) }

// Or requires any condition.
func (dialect) Or(of []object) object { return combined("$or", of) }

func combined(operator string, of []object) object {
	if len(of) == 1 {
		return of[0]
	}
	return object{operator: of}
}

// Not is not used: only exact conditions are negated.
func (dialect) Not(of object) object { return of }

// Compare compares single values, and finds all lists.
func (d dialect) Compare(c filter.Compare) (object, bool) {
	list := object{listKey(c.Field): object{"$eq": true}}
	if n, ok := c.Value.(int64); ok {
		c.Value = float64(n)
	}
	v, isNumber := c.Value.(float64)
	switch {
	case isNumber:
		return d.Or([]object{{c.Field: object{operator(c.Op): number(v)}}, wholeNumbers(c.Field, c.Op, v), list}), true
	case c.Op == filter.Equal:
		return d.Or([]object{{c.Field: object{"$eq": c.Value}}, list}), true
	}
	return nil, false
}

func operator(op filter.Op) string { return "$" + string(op) }

// wholeNumbers compares values that are whole numbers.
func wholeNumbers(field string, op filter.Op, v float64) object {
	bound := math.Floor(v)
	if op == filter.Less || op == filter.GreaterOrEqual {
		bound = math.Ceil(v)
	}
	return object{field: object{operator(op): int64(bound)}}
}

// In compares a field with several values.
func (d dialect) In(c filter.In) (object, bool) { return remote.AnyOf(d, c) }

// Exists cannot be expressed.
func (dialect) Exists(filter.Exists) (object, bool) { return nil, false }

// Exact is false, because lists are not compared.
func (dialect) Exact() bool { return false }

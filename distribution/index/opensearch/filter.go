package opensearch

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/internal/filter"
)

// field is the mapping of a field.
type field struct {
	Type       string           `json:"type"`
	Properties map[string]field `json:"properties"`
	Fields     map[string]field `json:"fields"`
	Above      int              `json:"ignore_above"`
}

// dialect makes conditions for the fields of an index.
type dialect struct {
	prefix string // before the fields of the metadata
	root   field
	known  bool // the mapping could be read
}

// dialect reads the mapping of the index, if a filter needs it.
func (x *Index) dialect(ctx context.Context, f filter.Filter) (dialect, error) {
	d := dialect{}
	if !x.isText() {
		d.prefix = "metadata."
	}
	if f == nil {
		return d, nil
	}
	var answer map[string]struct {
		Mappings field `json:"mappings"`
	}
	err := x.Client.Do(ctx, http.MethodGet, x.path("/_mapping"), nil, &answer)
	if remote.IsStatus(err, http.StatusNotFound) || remote.IsStatus(err, http.StatusForbidden) {
		return d, nil
	}
	for _, one := range answer { // an alias may name several indexes of one form
		d.root, d.known = one.Mappings, true
	}
	return d, err
}

// find returns the mapping of a field of the metadata.
func (d dialect) find(path string) (name string, found field, ok bool) {
	name = d.prefix + path
	at := d.root
	for _, part := range filter.Path(name) {
		next, exists := at.Properties[part]
		if !exists {
			return name, field{}, false
		}
		at = next
	}
	return name, at, true
}

// numbers is the mapping of numbers that this module declares.
func numbers() field { return field{Type: "double"} }

// nothing is the condition that no document satisfies.
func nothing() any { return object{"match_none": object{}} }

// And requires all conditions.
func (dialect) And(of []any) any { return object{"bool": object{"filter": of}} }

// Or requires any condition.
func (dialect) Or(of []any) any {
	return object{"bool": object{"should": of, "minimum_should_match": 1}}
}

// Not requires that a condition is not satisfied.
func (dialect) Not(of any) any { return object{"bool": object{"must_not": []any{of}}} }

// Compare compares a field by its type in the index.
func (d dialect) Compare(c filter.Compare) (any, bool) {
	name, f, ok := d.find(c.Field)
	switch {
	case !d.known:
		return condition(name, c), c.Op == filter.Equal
	case !ok:
		return nothing(), true
	}
	switch v := c.Value.(type) {
	case string:
		if f.Type == "text" {
			if name, f, ok = keywordOf(name, f); !ok {
				return nil, false
			}
		}
		if f.Type != "keyword" || f.Above > 0 && utf8.RuneCountInString(v) > f.Above {
			return nil, false
		}
		return condition(name, c), true
	case bool:
		return condition(name, c), f.Type == "boolean"
	}
	return condition(name, c), f.Type == numbers().Type
}

// keywordOf returns the part of a text field that has its exact value.
func keywordOf(name string, f field) (string, field, bool) {
	for sub, k := range f.Fields {
		if k.Type == "keyword" {
			return name + "." + sub, k, true
		}
	}
	return "", field{}, false
}

// condition returns a comparison.
func condition(name string, c filter.Compare) any {
	if c.Op == filter.Equal {
		return object{"term": object{name: c.Value}}
	}
	return object{"range": object{name: object{string(c.Op): c.Value}}}
}

// In compares a field with several values.
func (d dialect) In(c filter.In) (any, bool) { return remote.AnyOf(d, c) }

// Exists requires that a field has a value.
func (d dialect) Exists(c filter.Exists) (any, bool) {
	name, _, ok := d.find(c.Field)
	if d.known && !ok {
		return nothing(), true
	}
	return object{"exists": object{"field": name}}, true
}

// maxWindow is how many results one search may have.
const maxWindow = 10_000

// size returns the number of results to request.
func size(n int) int { return min(n, maxWindow) }

// Exact reports whether the types of the fields are known.
func (d dialect) Exact() bool { return true }

package remote

import "github.com/qtype-dev/qtype/internal/filter"

// Dialect makes the conditions of a store's query language. A condition that the store
// cannot express is not made: ok is false.
type Dialect[Q any] interface {
	And(of []Q) Q
	Or(of []Q) Q
	Not(of Q) Q
	Compare(c filter.Compare) (q Q, ok bool)
	In(c filter.In) (q Q, ok bool)
	Exists(c filter.Exists) (q Q, ok bool)
	// Exact reports whether the conditions are satisfied only by entries that satisfy the
	// filter.
	Exact() bool
}

// Translated is the condition of a store for a filter.
type Translated[Q any] struct {
	Query Q    // the condition
	Found bool // false if there is no condition
	Exact bool // false if entries that do not satisfy the filter may satisfy Query
}

// Translate returns a condition that all entries satisfy that satisfy the filter.
func Translate[Q any](f filter.Filter, d Dialect[Q]) Translated[Q] {
	switch f := f.(type) {
	case nil:
		return Translated[Q]{Exact: true}
	case filter.And:
		return combine(f.Of, d, d.And, false)
	case filter.Or:
		return combine(f.Of, d, d.Or, true)
	case filter.Not:
		// The negation of a condition that is too wide would be too narrow.
		inner := Translate(f.Of, d)
		if !inner.Exact || !inner.Found {
			return Translated[Q]{}
		}
		return Translated[Q]{Query: d.Not(inner.Query), Found: true, Exact: true}
	case filter.Compare:
		q, ok := d.Compare(f)
		return Translated[Q]{Query: q, Found: ok, Exact: ok && d.Exact()}
	case filter.In:
		q, ok := d.In(f)
		return Translated[Q]{Query: q, Found: ok, Exact: ok && d.Exact()}
	case filter.Exists:
		q, ok := d.Exists(f)
		return Translated[Q]{Query: q, Found: ok, Exact: ok && d.Exact()}
	}
	return Translated[Q]{}
}

// combine translates the parts of a combination. Parts that cannot be expressed are left
// out, or, if all are needed, the whole combination.
func combine[Q any](of []filter.Filter, d Dialect[Q], join func([]Q) Q, needAll bool) Translated[Q] {
	result := Translated[Q]{Exact: true}
	var parts []Q
	for _, f := range of {
		part := Translate(f, d)
		result.Exact = result.Exact && part.Exact
		if part.Found {
			parts = append(parts, part.Query)
		} else if needAll {
			return Translated[Q]{}
		}
	}
	if len(parts) > 0 {
		result.Query, result.Found = join(parts), true
	}
	return result
}

// AnyOf compares a field with several values by comparing it with each, for stores that have no
// other condition.
func AnyOf[Q any](d Dialect[Q], c filter.In) (q Q, ok bool) {
	of := make([]Q, len(c.Values))
	for i, v := range c.Values {
		if of[i], ok = d.Compare(filter.Compare{Field: c.Field, Op: filter.Equal, Value: v}); !ok {
			return q, false
		}
	}
	return d.Or(of), true
}

package qdrant

import (
	"context"
	"net/http"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// Search returns the nearest entries.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	if err := remote.CheckVectorQuery("qdrant", q, x.Dimensions); err != nil {
		return nil, err
	}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	condition := remote.Translate(q.Filter, dialect{})
	return remote.Search(q.Limit, q.Filter, condition.Exact, func(n int) ([]index.Match, error) {
		request := map[string]any{"limit": n, "with_payload": true, "with_vector": false}
		if condition.Found {
			request["filter"] = topLevel(condition.Query)
		}
		records, err := x.query(ctx, c, q.Vector, request)
		matches := make([]index.Match, len(records))
		for i, r := range records {
			matches[i] = index.Match{Entry: x.entry(r), Score: r.Score}
			if c.distance == "Euclid" || c.distance == "Manhattan" {
				matches[i].Score = -r.Score
			}
		}
		return matches, err
	})
}

// query sends a search. Servers before 1.10 have only the older request.
func (x *Index) query(ctx context.Context, c *collection, vector []float32, request map[string]any) ([]record, error) {
	var answer struct {
		Result struct {
			Points []record `json:"points"`
		} `json:"result"`
	}
	request["query"] = vector
	if c.vector != "" {
		request["using"] = c.vector
	}
	err := x.Client.Do(ctx, http.MethodPost, x.path("/points/query"), request, &answer)
	if !remote.IsStatus(err, http.StatusNotFound) {
		return answer.Result.Points, err
	}
	delete(request, "query")
	delete(request, "using")
	request["vector"] = map[string]any{"name": c.vector, "vector": vector}
	var older struct {
		Result []record `json:"result"`
	}
	err = x.Client.Do(ctx, http.MethodPost, x.path("/points/search"), request, &older)
	if remote.IsStatus(err, http.StatusNotFound) {
		return nil, nil // the collection was removed meanwhile
	}
	return older.Result, err
}

// dialect makes Qdrant's conditions. Qdrant compares the items of lists one by one, as
// package filter does.
type dialect struct{}

// clause is a condition of a combination.
type clause = map[string]any

// topLevel returns a condition as a filter, which must be a combination.
func topLevel(c clause) clause {
	for _, key := range []string{"must", "should", "must_not"} {
		if _, ok := c[key]; ok {
			return c
		}
	}
	return clause{"must": []clause{c}}
}

// And requires all conditions.
func (dialect) And(of []clause) clause { return clause{"must": of} }

// Or requires any condition.
func (dialect) Or(of []clause) clause { return clause{"should": of} }

// Not requires that a condition is not satisfied.
func (dialect) Not(of clause) clause { return clause{"must_not": []clause{of}} }

// Compare compares a field. Qdrant has no order of texts.
func (dialect) Compare(c filter.Compare) (clause, bool) {
	switch c.Value.(type) {
	case int64, float64:
		return clause{"key": key(c.Field), "range": numberRange(c)}, true
	}
	return clause{"key": key(c.Field), "match": clause{"value": c.Value}}, c.Op == filter.Equal
}

// key returns the path of a field in Qdrant's syntax.
func key(field string) string {
	parts := filter.Path(field)
	for i, part := range parts {
		if strings.ContainsFunc(part, func(r rune) bool {
			return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
		}) {
			parts[i] = `"` + part + `"`
		}
	}
	return strings.Join(parts, ".")
}

// numberRange returns the range of numbers that satisfy a comparison. Equality is a range
// too, because a match compares only integers.
func numberRange(c filter.Compare) clause {
	if c.Op == filter.Equal {
		return clause{"gte": c.Value, "lte": c.Value}
	}
	return clause{string(c.Op): c.Value}
}

// In compares a field with several values.
func (d dialect) In(c filter.In) (clause, bool) {
	of := make([]clause, len(c.Values))
	for i, v := range c.Values {
		of[i], _ = d.Compare(filter.Compare{Field: c.Field, Op: filter.Equal, Value: v})
	}
	return d.Or(of), true
}

// Exists requires that a field has a value.
func (d dialect) Exists(c filter.Exists) (clause, bool) {
	return d.Not(clause{"is_empty": clause{"key": key(c.Field)}}), true
}

// Exact is true.
func (dialect) Exact() bool { return true }

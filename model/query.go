package model

import "context"

type queryKey struct{}

// ForQueries returns a context in which Embed computes the vectors of queries of a search. The
// vectors of some models depend on whether a text is a query or a document.
func ForQueries(ctx context.Context) context.Context {
	return context.WithValue(ctx, queryKey{}, true)
}

// IsForQueries reports whether ForQueries made the context.
func IsForQueries(ctx context.Context) bool {
	is, _ := ctx.Value(queryKey{}).(bool)
	return is
}

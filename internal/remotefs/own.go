package remotefs

import (
	"context"
	"slices"
)

type ownKey struct{}

// WithOwn returns a context of a run that reads and writes files itself, which no step may replace.
func WithOwn(ctx context.Context, files ...string) context.Context {
	return context.WithValue(ctx, ownKey{}, files)
}

// IsOwn reports whether a path or URL is one of the files of the run.
func IsOwn(ctx context.Context, path string) bool {
	files, _ := ctx.Value(ownKey{}).([]string)
	return slices.ContainsFunc(files, func(file string) bool { return IsSame(file, path) })
}

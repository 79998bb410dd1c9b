package stepcache

import (
	"context"
	"sync/atomic"
)

type droppedKey struct{}

// dropped notes failures that a result does not have.
type dropped struct {
	noted atomic.Bool
	outer *dropped // of a cached step whose flow runs the step; nil for none
}

// withDropped returns a context for the computation of a result.
func withDropped(ctx context.Context) (context.Context, *dropped) {
	outer, _ := ctx.Value(droppedKey{}).(*dropped)
	d := &dropped{outer: outer}
	return context.WithValue(ctx, droppedKey{}, d), d
}

// NoteDropped notes that a step in the flow of a cached step has failed on a row, and that on_error removed
// the failure. The result of the cached step is not stored: a later run would not know of the failure.
func NoteDropped(ctx context.Context) {
	d, _ := ctx.Value(droppedKey{}).(*dropped)
	for ; d != nil; d = d.outer {
		d.noted.Store(true)
	}
}

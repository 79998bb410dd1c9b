package waves

import "context"

type runKey struct{}

// With returns a context in which documents are read for applications whose models make their calls in the batches of a run.
func With(ctx context.Context, r *Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// Of returns the run of a context, nil for none.
func Of(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

type passKey struct{}

// WithPass returns a context for one run of an application that makes a pass over the rows: calls of models whose answers are not
// known are noted, and their rows are suspended.
func WithPass(ctx context.Context, p *Pass) context.Context {
	return context.WithValue(ctx, passKey{}, p)
}

// PassOf returns the pass of a context, nil for none.
func PassOf(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

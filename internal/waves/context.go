package waves

import (
	"context"
	"fmt"
	"net/http"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec"
)

type runKey struct{}

// With returns a context in which documents are read for applications whose models make their calls in the batches of a run.
func With(ctx context.Context, r *Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

type partKey struct{}

// WithPart returns a context of one of several applications whose models have the same ids, such as a variant of an evaluation.
func WithPart(ctx context.Context, number int) context.Context {
	return context.WithValue(ctx, partKey{}, number)
}

// ClientOf returns what makes the HTTP clients of models that make their calls in the batches of the run of a context; nil without one.
func ClientOf(ctx context.Context) func(m *spec.Model, api wire.Batches, next *http.Client) *http.Client {
	r := Of(ctx)
	if r == nil {
		return nil
	}
	number, _ := ctx.Value(partKey{}).(int)
	return func(m *spec.Model, api wire.Batches, next *http.Client) *http.Client {
		name := m.ID
		if number > 0 {
			name = fmt.Sprintf("%s (%d)", m.ID, number+1)
		}
		return r.client(name, m, api, next)
	}
}

// Of returns the run of a context, nil for none.
func Of(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// WindowOf returns the window of the run of a context; see Run.Window.
func WindowOf(ctx context.Context) string {
	if r := Of(ctx); r != nil {
		return r.Window
	}
	return ""
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

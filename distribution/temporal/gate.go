package temporal

import (
	"context"
	"sync/atomic"
)

// gate limits how many calls are made at once, and how many wait for that.
type gate struct {
	places  chan struct{} // one for each call
	waiting atomic.Int64
	most    int64 // calls that wait
}

func newGate(calls, waiting int) *gate {
	return &gate{places: make(chan struct{}, calls), most: int64(waiting)}
}

// pass makes a call. If too many wait, it returns the answer to a client whose request can be sent again.
func (g *gate) pass(ctx context.Context, call func() error) error {
	if g.waiting.Add(1) > g.most+int64(cap(g.places)) {
		g.waiting.Add(-1)
		return tryLater("too many requests wait for their start; try again later")
	}
	defer g.waiting.Add(-1)
	select {
	case g.places <- struct{}{}:
		defer func() { <-g.places }()
		return call()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

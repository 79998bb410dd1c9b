package temporal

import (
	"context"
	"sync"
	"sync/atomic"
)

// gate limits how many requests are starting at once, and how many wait for that.
type gate struct {
	places  chan struct{} // one for each request
	waiting atomic.Int64
	most    int64 // requests that start or wait
}

func newGate(starts, waiting int) *gate {
	return &gate{places: make(chan struct{}, starts), most: int64(starts + waiting)}
}

// enter waits for a place, which the caller leaves when its request has begun; a second call of leave does nothing. If too many wait, it
// returns the answer to a client whose request can be sent again.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if g.waiting.Add(1) > g.most {
		g.waiting.Add(-1)
		return nil, tryLater("too many requests wait for their start; try again later")
	}
	select {
	case g.places <- struct{}{}:
		return sync.OnceFunc(func() { <-g.places; g.waiting.Add(-1) }), nil
	case <-ctx.Done():
		g.waiting.Add(-1)
		return nil, context.Cause(ctx)
	}
}

package runtime

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/steps"
)

// errStopped is returned by emit when no more rows are needed.
var errStopped = errors.New("no more rows are wanted")

// sink receives rows. A flow is a chain of sinks. The caller's goroutine pushes a row
// into the first one and its results through all others, so a flow without workers
// runs on one goroutine and has one row at a time.
type sink interface {
	// push processes a row. Its error ends the run.
	push(ctx context.Context, row *steps.Row) error
	// finish is called once after the last row.
	finish(ctx context.Context) error
	// stop stops background work and waits for its end. It is called also after
	// finish.
	stop()
}

// linked is a sink that passes rows to another one.
type linked interface{ downstream() sink }

// downstream returns the sink after a sink, nil at the end of a chain.
func downstream(s sink) sink {
	if l, ok := s.(linked); ok {
		return l.downstream()
	}
	return nil
}

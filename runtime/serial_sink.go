package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

// serialSink processes one row after the other.
type serialSink struct {
	pipe *pipe
	next sink
}

func newSerialSink(ctx context.Context, nodes []*node, next sink) *serialSink {
	return &serialSink{newPipe(ctx, nodes, func(r *steps.Row) error { return next.push(ctx, r) }), next}
}

func (s *serialSink) push(_ context.Context, row *steps.Row) error { return s.pipe.process(row) }

func (s *serialSink) finish(ctx context.Context) error {
	err := closeAll(ctx, s.pipe.nodes, func(r *steps.Row) error { return s.next.push(ctx, r) })
	if err != nil {
		return err
	}
	return s.next.finish(ctx)
}

func (s *serialSink) stop() { s.next.stop() }

func (s *serialSink) downstream() sink { return s.next }

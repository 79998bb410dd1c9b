package runtime

import "context"

// chain returns the sinks of some stages, which end in out.
func chain(ctx context.Context, stages []stage, out sink) sink {
	next := out
	for i := len(stages) - 1; i >= 0; i-- {
		s := stages[i]
		switch {
		case s.nodes[0].batch != nil:
			next = newBatchSink(ctx, s.nodes[0], next)
		case s.workers > 1:
			next = newParallelSink(ctx, s, next)
		default:
			next = newSerialSink(ctx, s.nodes, next)
		}
	}
	return next
}

package runtime

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// hasMaxWait reports whether a stage flushes its batch after a timeout. Such a flow
// runs in concurrent sections, so that the timer can fire while earlier steps work.
func hasMaxWait(stages []stage) bool {
	return slices.ContainsFunc(stages, func(s stage) bool { return s.nodes[0].maxWait > 0 })
}

// sections divides the stages of a flow before each batch step with a maximum wait.
func sections(stages []stage) [][]stage {
	var all [][]stage
	start := 0
	for i, s := range stages {
		if s.nodes[0].maxWait > 0 && i > start {
			all = append(all, stages[start:i])
			start = i
		}
	}
	return append(all, stages[start:])
}

// runSections runs a flow in sections: the input and each section but the last on
// goroutines, the last section on the caller's. A channel with room for one row is
// between two sections.
func (r *run) runSections(ctx context.Context, rows iter.Seq[Input], out sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	begin := func(to channelSink, work func() error) {
		group.Go(func() {
			defer close(to)
			if err := work(); err != nil {
				cancel(err)
			}
		})
	}
	input := make(channelSink, 1)
	begin(input, func() error { return r.feed(ctx, rows, input) })
	in := input
	all := sections(r.stages)
	for _, stages := range all[:len(all)-1] {
		from, to := in, make(channelSink, 1)
		begin(to, func() error { return r.runSection(ctx, from, stages, to) })
		in = to
	}
	return r.runSection(ctx, in, all[len(all)-1], out)
}

// channelSink is the end of a section: it passes rows to the next one.
type channelSink chan *steps.Row

func (h channelSink) push(ctx context.Context, row *steps.Row) error {
	select {
	case h <- row:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h channelSink) finish(context.Context) error { return nil }

func (h channelSink) stop() {}

// runSection processes the rows of the previous section. It flushes the batch at the
// start of the section after its maximum wait, and passes on the results of workers
// as soon as they are ready.
func (r *run) runSection(ctx context.Context, in <-chan *steps.Row, stages []stage, out sink) error {
	ctx, cancel := context.WithCancel(ctx)
	first := r.chain(ctx, stages, out)
	defer first.stop()
	defer cancel()
	ready := make(chan struct{}, 1)
	notifyOnDone(first, ready)
	wait := &batchTimer{sink: first}
	for {
		select {
		case row, more := <-in:
			switch {
			case more:
				if err := first.push(ctx, row); err != nil {
					return err
				}
			case ctx.Err() != nil:
				return context.Cause(ctx)
			default:
				return first.finish(ctx)
			}
		case <-wait.expired():
			if err := first.(*batchSink).flush(ctx); err != nil {
				return err
			}
		case <-ready:
			if err := drainReady(ctx, first); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// batchTimer fires when the open batch of a section reaches its maximum wait.
type batchTimer struct {
	sink  sink
	timer *time.Timer
}

// expired returns a channel that receives at that time; nil if no batch is open.
func (p *batchTimer) expired() <-chan time.Time {
	b, ok := p.sink.(*batchSink)
	if !ok || b.node.maxWait == 0 || len(b.rows) == 0 {
		return nil
	}
	left := time.Until(b.since.Add(b.node.maxWait))
	if p.timer == nil {
		p.timer = time.NewTimer(left)
	} else {
		p.timer.Reset(left)
	}
	return p.timer.C
}

// notifyOnDone makes all stages with workers of a chain send to ready when a row is
// done.
func notifyOnDone(s sink, ready chan struct{}) {
	for ; s != nil; s = downstream(s) {
		if p, ok := s.(*parallelSink); ok {
			p.wakes = ready
		}
	}
}

// drainReady passes on the results that workers have ready, and finishes their rows.
func drainReady(ctx context.Context, first sink) error {
	for s := first; s != nil; s = downstream(s) {
		if p, ok := s.(*parallelSink); ok {
			if err := p.drainReady(ctx); err != nil {
				return err
			}
		}
	}
	for s := first; s != nil; s = downstream(s) {
		if l, ok := s.(*segment); ok {
			if err := l.finishReady(); err != nil {
				return err
			}
		}
	}
	return nil
}

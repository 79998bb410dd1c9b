package runtime

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/steps"
)

// chain builds the sinks of consecutive stages of the run in front of out, with
// segments if the run has checkpoints.
func (r *run) chain(ctx context.Context, stages []stage, out sink) sink {
	first := r.segments(ctx, stages, out)
	for s := first; s != nil && r.mayDefer != nil; s = downstream(s) {
		if b, ok := s.(*batchSink); ok {
			b.mayDefer = func(row *steps.Row) bool { return r.mayDefer(r.flow.result(row, r.outputs)) }
		}
	}
	return first
}

func (r *run) segments(ctx context.Context, stages []stage, out sink) sink {
	if r.checkpoints == nil {
		return chain(ctx, stages, out)
	}
	next := out
	for end := len(stages); end > 0; {
		start := end
		for start > 0 && !stages[start-1].isBatch {
			start--
		}
		if start < end {
			next = r.newSegment(ctx, stages[start:end], next)
		}
		if start > 0 {
			next = chain(ctx, stages[start-1:start], next)
		}
		end = start - 1
	}
	return next
}

// segment takes rows through the stages between two batch steps, and skips these
// for rows that an earlier run has finished. A segmentSink is at its end.
type segment struct {
	run         *run
	number      int
	rows        int64 // the rows so far, in segments after the first
	checkpoints *checkpoint.Segment
	inflight    *checkpoint.InflightRows // nil if workers record the results
	first       sink
}

// newSegment builds a segment. If it is one stage with workers, each worker
// records the results of its rows; else the segmentSink does.
func (r *run) newSegment(ctx context.Context, stages []stage, next sink) *segment {
	s := &segment{run: r, number: stages[0].segment, checkpoints: r.segmentCheckpoints(stages[0].segment)}
	end := &segmentSink{next: next, last: s.number == r.stages[len(r.stages)-1].segment}
	s.first = chain(ctx, stages, end)
	if p, ok := s.first.(*parallelSink); ok && p.next == sink(end) {
		p.newRecorder = s.checkpoints.NewRecorder
	} else {
		s.inflight = s.checkpoints.NewInflightRows()
		end.inflight = s.inflight
	}
	return s
}

// segmentCheckpoints are the checkpoints of one segment of the run.
func (r *run) segmentCheckpoints(number int) *checkpoint.Segment {
	return checkpoint.NewSegment(checkpoint.SegmentConfig{
		Store: r.checkpoints, Number: number, Inputs: r.flow.liveSlots(number), Outputs: r.flow.liveSlots(number + 1),
		Code: ErrorCode,
		Redo: func(err *steps.Error) bool {
			return CredentialsRejected(err) != nil || StoreFailed(err) != nil || OutageLasts(err) != nil || isSuspended(err)
		},
		NewRow: func() *steps.Row { return r.flow.newRow("", 0) },
	})
}

// push takes a row through the segment, or passes on its results of an earlier run.
func (s *segment) push(ctx context.Context, row *steps.Row) error {
	if s.number > 0 {
		s.rows++
		row.Ordinal = steps.Ordinal(s.number, s.rows)
		if row.Err != nil { // the segment does not change it
			return s.first.push(ctx, row)
		}
	}
	found, err := s.checkpoints.Replay(row, func(r *steps.Row) error { return s.first.push(ctx, r) })
	if err != nil {
		return err
	}
	if found {
		s.run.replayed.Store(true)
		if s.number == 0 {
			s.run.progress.rows.Add(-1) // an earlier run has counted it
		}
		return s.finishReady()
	}
	if s.inflight != nil {
		s.inflight.Begin(row.Ordinal)
	}
	if err := s.first.push(ctx, row); err != nil {
		return err
	}
	return s.finishReady()
}

// finishReady finishes the rows of which the segment has nothing left.
func (s *segment) finishReady() error {
	if s.inflight == nil {
		return nil
	}
	return s.inflight.FinishBefore(oldestPending(s.first))
}

func (s *segment) finish(ctx context.Context) error { return s.first.finish(ctx) }

func (s *segment) stop() { s.first.stop() }

func (s *segment) downstream() sink { return s.first }

// segmentSink is the end of a segment.
type segmentSink struct {
	next     sink
	inflight *checkpoint.InflightRows // nil if workers record the results
	last     bool                     // next is the end of the flow
}

func (e *segmentSink) push(ctx context.Context, row *steps.Row) error {
	if e.inflight != nil && !row.Replayed {
		if err := e.inflight.Record(row); err != nil {
			return err
		}
	}
	if row.Err == nil && !e.last {
		row.Replayed = false // the following steps process it
	}
	return e.next.push(ctx, row)
}

func (e *segmentSink) finish(ctx context.Context) error {
	if e.inflight != nil {
		if err := e.inflight.FinishBefore(checkpoint.None); err != nil {
			return err
		}
	}
	return e.next.finish(ctx)
}

func (e *segmentSink) stop() { e.next.stop() }

func (e *segmentSink) downstream() sink { return e.next }

// buffering is a sink that may have rows left when push returns.
type buffering interface {
	// oldestBuffered returns the ordinal of the first row with something here or later in
	// the segment; checkpoint.None if nothing is.
	oldestBuffered() int64
}

// oldestPending returns the ordinal of the first row that a chain has something of.
func oldestPending(s sink) int64 {
	if b, ok := s.(buffering); ok {
		return b.oldestBuffered()
	}
	return checkpoint.None
}

func (s *serialSink) oldestBuffered() int64 { return oldestPending(s.next) }

func (p *parallelSink) oldestBuffered() int64 {
	low := oldestPending(p.next)
	if len(p.queue) > 0 {
		low = min(low, p.queue[0].ordinal)
	}
	return low
}

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

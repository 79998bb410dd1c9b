package runtime

import (
	"context"

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

package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

// chain builds the sinks of the run's stages, or of some that follow each
// other, in front of out: with the legs where somebody wants to know which rows
// are finished.
func (r *run) chain(ctx context.Context, stages []stage, out sink) sink {
	first := r.segments(ctx, stages, out)
	for s := first; s != nil && r.mayHold != nil; s = downstream(s) {
		if b, ok := s.(*batchSink); ok {
			b.mayHold = func(row *steps.Row) bool { return r.mayHold(r.flow.result(row, r.outputs)) }
		}
	}
	return first
}

func (r *run) segments(ctx context.Context, stages []stage, out sink) sink {
	switch {
	case r.finished != nil:
		return r.newSegment(ctx, stages, out, nil)
	case r.keeper == nil:
		return chain(ctx, stages, out)
	}
	next := out
	for end := len(stages); end > 0; {
		start := end
		for start > 0 && !stages[start-1].gathers {
			start--
		}
		if start < end {
			next = r.newSegment(ctx, stages[start:end], next, r.newSegmentCheckpoint(stages[start].leg))
		}
		if start > 0 {
			next = chain(ctx, stages[start-1:start], next)
		}
		end = start - 1
	}
	return next
}

// segment is the way of rows through the stages between two steps that gather rows.
// It stands in front of them; at their end is a segmentSink.
type segment struct {
	number int
	rows   int64 // that have come, on another leg than 0
	keeper *segmentCheckpoint
	ledger *inflightRows // nil where workers tell of finished rows
	first  sink
	run    *run
}

// newSegment builds a leg. Rows are known to be finished by the worker that is done
// with them where the leg is one stage with workers, else at the leg's end.
func (r *run) newSegment(ctx context.Context, stages []stage, next sink, k *segmentCheckpoint) *segment {
	l := &segment{keeper: k, run: r}
	last := true
	if len(stages) > 0 {
		l.number = stages[0].leg
		last = l.number == r.flow.stages[len(r.flow.stages)-1].leg
	}
	record := func() rowObserver { return &resultObserver{run: r} }
	if k != nil {
		record = func() rowObserver { return &checkpointObserver{of: k, rows: rowEncoder{slots: k.ends}} }
	}
	end := &segmentSink{next: next, last: last}
	l.first = chain(ctx, stages, end)
	if p, ok := l.first.(*parallelSink); ok && p.next == sink(end) {
		p.record = record
	} else {
		l.ledger = &inflightRows{record: record}
		end.ledger = l.ledger
	}
	return l
}

// push takes a row along the leg, or in its place what became of it before.
func (l *segment) push(ctx context.Context, row *steps.Row) error {
	if l.number > 0 {
		l.rows++
		row.Place = steps.Ordinal(l.number, l.rows)
		if row.Err != nil { // nothing happens to it here
			return l.first.push(ctx, row)
		}
	}
	if l.keeper != nil {
		known, err := l.keeper.replay(row, func(r *steps.Row) error { return l.first.push(ctx, r) })
		if err != nil {
			return err
		}
		if known {
			if l.number == 0 {
				l.run.progress.rows.Add(-1) // it was done before
			}
			return l.finishReady()
		}
	}
	if l.ledger != nil {
		l.ledger.begin(row.Place)
	}
	if err := l.first.push(ctx, row); err != nil {
		return err
	}
	return l.finishReady()
}

// finishReady tells of the rows that are finished.
func (l *segment) finishReady() error {
	if l.ledger == nil {
		return nil
	}
	return l.ledger.finishBefore(oldestPending(l.first))
}

func (l *segment) finish(ctx context.Context) error { return l.first.finish(ctx) }

func (l *segment) stop() { l.first.stop() }

// segmentSink is where rows leave a leg.
type segmentSink struct {
	next   sink
	ledger *inflightRows // nil where workers tell of finished rows
	last   bool          // next is the end of the flow
}

func (e *segmentSink) push(ctx context.Context, row *steps.Row) error {
	if e.ledger != nil && !row.Done {
		if err := e.ledger.keep(row); err != nil {
			return err
		}
	}
	if row.Err == nil && !e.last {
		row.Done = false // from here on the steps work on it
	}
	return e.next.push(ctx, row)
}

func (e *segmentSink) finish(ctx context.Context) error {
	if e.ledger != nil {
		if err := e.ledger.finishBefore(none); err != nil {
			return err
		}
	}
	return e.next.finish(ctx)
}

func (e *segmentSink) stop() { e.next.stop() }

package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

// retryBatch is a batch step with a retry policy.
type retryBatch struct {
	*retryPolicy
	id    string
	batch steps.Batch
}

// Size returns the size of the step.
func (c *retryBatch) Size() int { return c.batch.Size() }

// Batch runs the step on copies of the rows until it succeeds. If it fails single rows, such as those of one file,
// only these are tried again, and the results of the others stay: they are in a file or in an index.
func (c *retryBatch) Batch(ctx context.Context, rows []*steps.Row, emit steps.Emit) error {
	b := &retriedBatch{step: c, parts: []batchPart{{pending: rows}}}
	tried := uint(0)
	err := c.run(ctx, emit, func(ctx context.Context, _ steps.Emit) error {
		tried++
		return b.attempt(ctx)
	})
	if err != nil && (ctx.Err() != nil || !b.partial) {
		return err
	}
	return b.emit(tried, emit)
}

// retriedBatch is the result of a batch after some attempts.
type retriedBatch struct {
	step    *retryBatch
	parts   []batchPart // in the order of the results
	partial bool        // the step has processed the rows, with results or errors of single rows
}

// batchPart is a row that the step has emitted, or rows in its place on which it has failed.
type batchPart struct {
	row     *steps.Row
	pending []*steps.Row // the rows before the step, to be processed again; nil if row is a result
	failed  []*steps.Row // copies of pending with the errors of the last attempt, if any
}

// attempt processes what is pending. Its error is the first of a row that has failed.
func (b *retriedBatch) attempt(ctx context.Context) error {
	var all []batchPart
	var first error
	for i, p := range b.parts {
		if p.pending == nil {
			all = append(all, p)
			continue
		}
		made, err := b.step.once(ctx, p.pending)
		if err != nil {
			b.parts = append(all, b.parts[i:]...)
			return err
		}
		b.partial = true
		for _, m := range made {
			if m.failed != nil && first == nil {
				first = m.failed[0].Err.Err
			}
		}
		all = append(all, made...)
	}
	b.parts = all
	return first
}

// once runs the step on copies of rows. Failed rows in succession are one part.
func (c *retryBatch) once(ctx context.Context, rows []*steps.Row) ([]batchPart, error) {
	copies := make([]*steps.Row, len(rows))
	original := make(map[*steps.Row]*steps.Row, len(rows))
	for i, r := range rows {
		copies[i] = r.Clone()
		original[copies[i]] = r
	}
	var made []batchPart
	err := c.batch.Batch(ctx, copies, func(r *steps.Row) error {
		before := original[r]
		if before == nil || r.Err == nil || r.Err.Step != c.id {
			made = append(made, batchPart{row: r})
			return ctx.Err()
		}
		if n := len(made); n == 0 || made[n-1].pending == nil {
			made = append(made, batchPart{})
		}
		last := &made[len(made)-1]
		last.pending, last.failed = append(last.pending, before), append(last.failed, r)
		return ctx.Err()
	})
	return made, err
}

// emit emits the results, and the rows that have failed in each attempt.
func (b *retriedBatch) emit(tried uint, emit steps.Emit) error {
	for _, p := range b.parts {
		rows := p.failed
		if p.pending == nil {
			rows = []*steps.Row{p.row}
		}
		for _, r := range rows {
			if p.pending != nil {
				r.Err.Err = withTries(r.Err.Err, tried)
			}
			if err := emit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

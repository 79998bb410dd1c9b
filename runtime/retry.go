package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// TimeoutError reports that a step exceeded its timeout.
type TimeoutError struct {
	After time.Duration // the timeout
}

// Error names the timeout.
func (e *TimeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.After) }

// Timeout reports that this is a timeout, as net.Error does.
func (e *TimeoutError) Timeout() bool { return true }

// retryPolicy is a step's timeout and retry. Emitted rows are buffered until an
// attempt succeeds, so a retry never emits a row twice.
type retryPolicy struct {
	timeout time.Duration // 0 for none
	tries   uint          // attempts in all, at least 1
	delays  func() *backoff.ExponentialBackOff
}

// retryPolicyOf returns the policy of a step, nil if it declares none.
func retryPolicyOf(s *spec.StepBase) *retryPolicy {
	if s.Timeout == 0 && s.Retry == nil {
		return nil
	}
	c := &retryPolicy{timeout: time.Duration(s.Timeout), tries: 1}
	if r := s.Retry; r != nil {
		c.tries = uint(max(r.MaxAttempts, 1))
		c.delays = func() *backoff.ExponentialBackOff {
			b := backoff.NewExponentialBackOff()
			b.InitialInterval, b.MaxInterval = time.Duration(r.InitialDelay), time.Duration(r.MaxDelay)
			return b
		}
	}
	return c
}

// retryStep is a step with a retry policy.
type retryStep struct {
	*retryPolicy
	id   string
	step steps.Step
}

// Process runs the step on copies of the row until it succeeds. A row that fails in a
// flow that the step runs is a failure of the step; the rows of the last attempt are
// emitted then.
func (c *retryStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	var last []*steps.Row
	err := c.run(ctx, emit, func(ctx context.Context, hold steps.Emit) error {
		last = last[:0]
		var inside *steps.Error
		ctx, fail := remotefs.WithAttempt(ctx)
		succeeded := false // not after a panic either
		defer func() {
			if !succeeded {
				fail()
			}
		}()
		err := c.step.Process(ctx, row.Clone(), func(r *steps.Row) error {
			if r.Err != nil && r.Err.Step == c.id {
				inside = r.Err
			}
			last = append(last, r)
			return hold(r)
		})
		if err == nil && inside != nil {
			return &nestedFlowError{failed: inside}
		}
		succeeded = err == nil
		return err
	})
	var inside *nestedFlowError
	if !errors.As(err, &inside) {
		return err
	}
	for _, r := range last {
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// nestedFlowError is a failure in a flow that the step runs.
type nestedFlowError struct{ failed *steps.Error }

// Error is the failure's.
func (e *nestedFlowError) Error() string { return e.failed.Error() }

func (c *retryPolicy) run(ctx context.Context, emit steps.Emit, attempt func(context.Context, steps.Emit) error) error {
	tried := uint(0)
	once := func() ([]*steps.Row, error) {
		tried++
		return c.attempt(ctx, attempt)
	}
	opts := []backoff.RetryOption{backoff.WithMaxTries(c.tries), backoff.WithMaxElapsedTime(0)}
	if c.delays != nil {
		opts = append(opts, backoff.WithBackOff(c.delays()))
	}
	made, err := backoff.Retry(ctx, once, opts...)
	if err != nil {
		var final *backoff.PermanentError
		if errors.As(err, &final) {
			err = final.Err
		}
		return withTries(err, tried)
	}
	for _, r := range made {
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// withTries adds the number of attempts to the error of the last one.
func withTries(err error, tried uint) error {
	if tried > 1 {
		return fmt.Errorf("%w, tried %d times", err, tried)
	}
	return err
}

// attempt makes one attempt within the timeout. After the end of the run no other
// attempt is made.
func (c *retryPolicy) attempt(ctx context.Context, attempt func(context.Context, steps.Emit) error) ([]*steps.Row, error) {
	limited := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, c.timeout, &TimeoutError{After: c.timeout})
		defer cancel()
	}
	var made []*steps.Row
	err := recoverPanics(func() error {
		return attempt(limited, func(r *steps.Row) error { made = append(made, r); return limited.Err() })
	})
	switch {
	case err == nil:
		return made, nil
	case ctx.Err() != nil:
		return nil, backoff.Permanent(context.Cause(ctx))
	case limited.Err() != nil:
		return nil, context.Cause(limited)
	}
	return nil, err
}

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

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

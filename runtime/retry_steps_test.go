package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/steps"
)

// TestRetry_AllStepTypes: retry and on_error mean the same for each step type.
func TestRetry_AllStepTypes(t *testing.T) {
	broken := func(context.Context, *steps.Row) error { return errors.New("broken") }
	for kind, c := range errorCases(t) {
		t.Run(kind, func(t *testing.T) {
			var calls atomic.Int64
			retried := openCase(t, c.document(kind, "retry: {max_attempts: 3, initial_delay: 1ms, max_delay: 2ms}, "))
			plain, err := c.outcomes(t.Context(), retried, c.rows, nothing)
			if err != nil || slices.ContainsFunc(plain, func(s string) bool { return s != "ok" }) {
				t.Fatalf("without an error: %q, %v", plain, err)
			}
			got, err := c.outcomes(t.Context(), retried, c.rows, second(func(ctx context.Context, row *steps.Row) error {
				if calls.Add(1) < 3 {
					return broken(ctx, row)
				}
				return nil
			}))
			if err != nil || !slices.Equal(got, plain) || calls.Load() != 3 {
				t.Errorf("two failures, then none: %q after %d attempts, %v", got, calls.Load(), err)
			}
			calls.Store(0)
			got, err = c.outcomes(t.Context(), retried, c.rows, second(func(ctx context.Context, row *steps.Row) error {
				calls.Add(1)
				return broken(ctx, row)
			}))
			if err != nil || calls.Load() != 3 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "broken, tried 3 times") }) {
				t.Errorf("three failures: %q after %d attempts, %v", got, calls.Load(), err)
			}

			skip := openCase(t, c.document(kind, "on_error: skip, "))
			got, err = c.outcomes(t.Context(), skip, c.rows, second(broken))
			if err != nil || slices.ContainsFunc(got, func(s string) bool { return s != "ok" }) {
				t.Errorf("on_error: skip: %q, %v", got, err)
			}
			pass := openCase(t, c.document(kind, "on_error: continue, "))
			continued, err := c.outcomes(t.Context(), pass, c.rows, second(broken))
			if err != nil || len(continued) != len(got)+1 || slices.ContainsFunc(continued, func(s string) bool { return s != "ok" }) {
				t.Errorf("on_error: continue: %q, %v; skip returned %q", continued, err, got)
			}
		})
	}
}

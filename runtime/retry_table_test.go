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

// TestEveryStepTypeIsTriedAgainAndForgivenAsDeclared: retry and on_error mean
// the same for each of them.
func TestEveryStepTypeIsTriedAgainAndForgivenAsDeclared(t *testing.T) {
	broken := func(context.Context, *steps.Row) error { return errors.New("it broke") }
	for kind, c := range faultCases(t) {
		t.Run(kind, func(t *testing.T) {
			var calls atomic.Int64
			again := openFault(t, c.document(kind, "retry: {max_attempts: 3, initial_delay: 1ms, max_delay: 2ms}, "))
			plain, err := fates(t.Context(), again, c.rows, nothing)
			if err != nil || slices.ContainsFunc(plain, func(s string) bool { return s != "ok" }) {
				t.Fatalf("without a fault: %q, %v", plain, err)
			}
			got, err := fates(t.Context(), again, c.rows, second(func(ctx context.Context, row *steps.Row) error {
				if calls.Add(1) < 3 {
					return broken(ctx, row)
				}
				return nil
			}))
			if err != nil || !slices.Equal(got, plain) || calls.Load() != 3 {
				t.Errorf("two failures, then none: %q after %d attempts, %v", got, calls.Load(), err)
			}
			calls.Store(0)
			got, err = fates(t.Context(), again, c.rows, second(func(ctx context.Context, row *steps.Row) error {
				calls.Add(1)
				return broken(ctx, row)
			}))
			if err != nil || calls.Load() != 3 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "it broke, tried 3 times") }) {
				t.Errorf("three failures: %q after %d attempts, %v", got, calls.Load(), err)
			}

			skip := openFault(t, c.document(kind, "on_error: skip, "))
			got, err = fates(t.Context(), skip, c.rows, second(broken))
			if err != nil || slices.ContainsFunc(got, func(s string) bool { return s != "ok" }) {
				t.Errorf("on_error: skip: %q, %v", got, err)
			}
			pass := openFault(t, c.document(kind, "on_error: continue, "))
			kept, err := fates(t.Context(), pass, c.rows, second(broken))
			if err != nil || len(kept) != len(got)+1 || slices.ContainsFunc(kept, func(s string) bool { return s != "ok" }) {
				t.Errorf("on_error: continue: %q, %v; skip made %q", kept, err, got)
			}
		})
	}
}

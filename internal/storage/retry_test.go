package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// TestServer_Retry checks which errors are tried again, and what remains after the timeout.
func TestServer_Retry(t *testing.T) {
	failed := errors.New("refused")
	for name, tt := range map[string]struct {
		trouble   storage.Trouble
		answered  bool // a call has succeeded before
		failures  int  // of attempts, then success
		attempts  int  // wanted, 0 for many
		message   string
		temporary bool
	}{
		"success":             {attempts: 1},
		"short":               {trouble: storage.Short, failures: 3, attempts: 4},
		"permanent":           {trouble: storage.Permanent, failures: 3, attempts: 1, message: "memory store db://h: down"},
		"unreachable":         {trouble: storage.Unreachable, answered: true, failures: 3, attempts: 4},
		"unreachable at once": {trouble: storage.Unreachable, failures: 3, attempts: 1, message: "memory store db://h: down"},
		"too long":            {trouble: storage.Short, failures: 1 << 30, message: "memory store db://h: down; tried for 50ms", temporary: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storage.Server{Location: "db://h", Timeout: 50 * time.Millisecond}
			if tt.trouble == storage.Short && tt.failures == 3 || tt.answered {
				s.Timeout = time.Minute
			}
			f := storage.Failures{Trouble: func(error) storage.Trouble { return tt.trouble },
				Diagnose: func(error) (store.ErrorKind, string) { return store.Unavailable, "down" }}
			if tt.answered {
				testkit.Must(t, s.Retry(t.Context(), f, func(context.Context) error { return nil }))
			}
			attempts := 0
			err := s.Retry(t.Context(), f, func(context.Context) error {
				if attempts++; attempts <= tt.failures {
					return failed
				}
				return nil
			})
			var backend *store.StoreError
			if errors.As(err, &backend) != (tt.message != "") || backend != nil && (backend.Error() != tt.message || backend.Temporary != tt.temporary || !errors.Is(err, failed)) {
				t.Errorf("got %v", err)
			}
			if tt.attempts != 0 && attempts != tt.attempts || attempts == 0 {
				t.Errorf("%d attempts, want %d", attempts, tt.attempts)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &storage.Server{Timeout: time.Minute}
	err := s.Retry(ctx, storage.Failures{Trouble: func(error) storage.Trouble { return storage.Short }}, func(context.Context) error {
		cancel()
		return failed
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v after a cancellation", err)
	}
}

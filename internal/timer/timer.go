// Package timer waits within a context.
package timer

import (
	"context"
	"time"
)

// Sleep waits for a time. It returns the error of ctx if that ends first.
func Sleep(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

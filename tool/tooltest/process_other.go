//go:build !unix

package tooltest

import (
	"context"
	"testing"
)

// Begun is what a process writes to the path of KilledWith once it runs.
const Begun = "begun"

// KilledWith skips the test: it needs named pipes.
func KilledWith(t *testing.T, _ func(ctx context.Context, path string) error) {
	t.Helper()
	t.Skip("SKIPPED, NOT TESTED: it needs named pipes")
}

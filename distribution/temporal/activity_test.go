package temporal

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/memory"
)

// TestOwnContext: turns of a chunk that another worker has leave nothing, those of a canceled run do.
func TestOwnContext(t *testing.T) {
	for _, c := range []struct {
		name      string
		cause     error
		suspended bool
	}{
		{"canceled run", temporal.NewCanceledError(), false},
		{"end of the context", nil, false},
		{"another worker has it", serviceerror.NewNotFound("no such activity"), true},
		{"no answer", serviceerror.NewUnavailable("closed"), true},
	} {
		activity, end := context.WithCancelCause(t.Context())
		ctx, cancel := ownContext(activity)
		end(c.cause)
		<-ctx.Done()
		if got := errors.Is(context.Cause(ctx), memory.ErrSuspended); got != c.suspended {
			t.Errorf("%s: the cause is %v", c.name, context.Cause(ctx))
		}
		cancel(nil)
	}
}

package storage

import (
	"context"
	"errors"
	"time"
)

// Timeout is the cause of a context that ended because a server was too slow.
type Timeout time.Duration

// Error returns a message with the time limit.
func (t Timeout) Error() string { return "no answer within " + time.Duration(t).String() }

// WithTimeout bounds one call of a server. A shorter deadline of ctx still applies.
func WithTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, Timeout(limit))
}

// cause returns why a context made by WithTimeout ended: a Timeout, or the error
// of the caller's context. It is nil while the context has not ended.
func cause(ctx context.Context) (timeout, canceled error) {
	if ctx.Err() == nil {
		return nil, nil
	}
	var t Timeout
	if errors.As(context.Cause(ctx), &t) {
		return t, nil
	}
	return nil, ctx.Err()
}

package wire

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// maxIdle is how long a request about batches waits for its answer, or for the next bytes of a file.
const maxIdle = 2 * time.Minute

// errIdle ends a request whose server does nothing.
var errIdle = errors.New("the server does not answer")

// idleLimit ends a request for which nothing was transferred for a time.
type idleLimit struct {
	ctx   context.Context // of the request
	after time.Duration
	timer *time.Timer
}

// newIdleLimit returns a limit, whose time begins. ended must be called.
func newIdleLimit(ctx context.Context, after time.Duration) (l *idleLimit, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l = &idleLimit{ctx: ctx, after: after, timer: time.AfterFunc(after, func() { cancel(errIdle) })}
	return l, func() { l.timer.Stop(); cancel(nil) }
}

// reason returns the error of a request: that of a timeout if the limit has ended it.
func (l *idleLimit) reason(err error) error {
	if err != nil && errors.Is(context.Cause(l.ctx), errIdle) {
		return os.ErrDeadlineExceeded
	}
	return err
}

// upload is the body of a request, for which the server has time after each piece.
type upload struct {
	io.ReadCloser
	limit *idleLimit
}

func (u *upload) Read(p []byte) (int, error) {
	u.limit.timer.Stop()
	defer u.limit.timer.Reset(u.limit.after)
	return u.ReadCloser.Read(p)
}

// download is the body of a response. The time of the server is limited, not that of the reader.
type download struct {
	io.ReadCloser
	limit *idleLimit
}

func (d *download) Read(p []byte) (int, error) {
	d.limit.timer.Reset(d.limit.after)
	defer d.limit.timer.Stop()
	n, err := d.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, d.limit.reason(err)
}

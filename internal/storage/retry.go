package storage

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory/store"
)

// Trouble is how long a failure of a server lasts.
type Trouble int

// The kinds of trouble.
const (
	Permanent   Trouble = iota // the same call fails again: a wrong password, a full disk
	Unreachable                // no connection: short if the server has answered before, otherwise probably a wrong address
	Short                      // a lost connection, a server that starts up or has too many connections
)

const (
	firstPause = 10 * time.Millisecond
	maxPause   = 100 * time.Millisecond
)

// Failures describes the errors of a driver.
type Failures struct {
	Diagnose func(error) (store.ErrorKind, string) // kind and message of one line
	Trouble  func(error) Trouble                   // whether trying again may help
}

// Retry calls attempt within the server's timeout, again and again while its error is
// short trouble: attempt must be idempotent. It waits longer each time, for a random
// part, so that many callers do not return at the same moment. A server that has never
// answered is not waited for. The error is a *store.Error, one of the package memory,
// or that of ctx.
//
// In a run with timer.WithOutages, it begins again after the timeout, and waits for any server.
func (s *Server) Retry(ctx context.Context, f Failures, attempt func(context.Context) error) error {
	away := false
	return timer.Outlast(ctx, string(s.Location), func(error) bool { return away }, func() error {
		return s.retry(ctx, f, func(ctx context.Context) error {
			err := attempt(ctx)
			away = !IsFinal(err) && (ctx.Err() != nil || f.Trouble(err) != Permanent)
			return err
		})
	})
}

// retry is Retry within the timeout.
func (s *Server) retry(ctx context.Context, f Failures, attempt func(context.Context) error) error {
	bounded, cancel := WithTimeout(ctx, s.Timeout)
	defer cancel()
	var last error // the newest short trouble
	for n := 0; ; n++ {
		err := attempt(bounded)
		if IsFinal(err) {
			if err == nil && !s.answered.Load() {
				s.answered.Store(true)
			}
			return err
		}
		if bounded.Err() == nil && s.isShort(f.Trouble(err)) {
			last = err
			if wait(bounded, n) == nil {
				continue
			}
		}
		if last != nil && bounded.Err() != nil && ctx.Err() == nil {
			return s.gaveUp(last, f)
		}
		return s.Location.Explain(bounded, err, f.Diagnose)
	}
}

// isShort reports whether trying again may help within the timeout.
func (s *Server) isShort(t Trouble) bool {
	return t == Short || t == Unreachable && s.answered.Load()
}

// gaveUp returns the error after the timeout, whose reason is err.
func (s *Server) gaveUp(err error, f Failures) error {
	kind, message := f.Diagnose(err)
	return &store.Error{Location: string(s.Location), Problem: kind, Err: err, Temporary: true,
		Message: message + "; tried for " + s.Timeout.String()}
}

// wait waits before the next attempt; n is the number of failed attempts before the newest
// one. The first time it does not wait: a connection that broke while idle needs only a new one.
func wait(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	longest := min(firstPause<<min(n-1, 10), maxPause)
	return timer.Sleep(ctx, longest/2+rand.N(longest/2))
}

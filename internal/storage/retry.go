package storage

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync/atomic"
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

// DefaultTimeout bounds one call of a server if the URL names no timeout.
const DefaultTimeout = 10 * time.Second

// Server is the address of a database server that holds a store.
type Server struct {
	Location Location
	URL      *url.URL   // without Query
	Query    url.Values // parameters for the driver
	Prefix   string     // of the names of tables or keys
	Timeout  time.Duration

	answered atomic.Bool // a call has succeeded
}

// ParseServer reads a URL with one of the schemes. It removes the parameters
// timeout and prefixKey, which set Timeout and Prefix, from the query. Errors
// hold no credentials.
func ParseServer(address, prefixKey, defaultPrefix string, schemes ...string) (*Server, error) {
	s := &Server{Location: Location(schemes[0]), Prefix: defaultPrefix, Timeout: DefaultTimeout}
	u, err := url.Parse(address)
	if err != nil { // its text holds the password
		return nil, s.Location.Unavailable("invalid URL: percent-encode the password")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, s.Location.Unavailable("its URL must begin with " + schemes[0] + ":// or " + schemes[1] + "://")
	}
	s.Location = Location((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	if s.Query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, s.Location.Unavailable("invalid parameters in its URL: percent-encode their values")
	}
	u.RawQuery = ""
	s.URL = u
	if prefix, ok := s.take(prefixKey); ok {
		s.Prefix = prefix
	}
	if text, ok := s.take("timeout"); ok {
		if s.Timeout, err = time.ParseDuration(text); err != nil {
			return nil, s.Location.Unavailable("its timeout must be a duration such as 10s")
		}
	}
	return s, nil
}

// take removes a parameter from the query.
func (s *Server) take(name string) (value string, ok bool) {
	value, ok = s.Query.Get(name), s.Query.Has(name)
	s.Query.Del(name)
	return value, ok
}

// Check returns an error if the timeout is not positive.
func (s *Server) Check() error {
	if s.Timeout <= 0 {
		return s.Location.Unavailable("its timeout must be more than 0, such as 10s")
	}
	return nil
}

// DriverURL returns the URL for the driver, with credentials.
func (s *Server) DriverURL() *url.URL {
	u := *s.URL
	u.RawQuery = s.Query.Encode()
	return &u
}

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

package timer

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	firstOutagePause = 200 * time.Millisecond
	lastOutagePause  = 15 * time.Second

	// maxOvertaken is how often a call fails while others get answers from its server. Then the failure
	// is its own.
	maxOvertaken = 3
)

// OutageError is the error of a call whose server was away for too long.
type OutageError struct {
	After time.Duration // how long the call may have waited
	Err   error         // of the last attempt
}

// Error returns the error of the last attempt, and how long the server was waited for.
func (e *OutageError) Error() string { return fmt.Sprintf("%v; waited %s for it", e.Err, e.After) }

// Unwrap returns the error of the last attempt.
func (e *OutageError) Unwrap() error { return e.Err }

// outages are the servers that are away from a run.
type outages struct {
	limit time.Duration
	warn  func(string)

	mu      sync.Mutex
	servers map[string]*outage // those that were called
}

// outage is the state of a server.
type outage struct {
	since       time.Time // zero if the server is not away
	answers     int       // after its first one, or its first failure
	hasAnswered bool
}

type outagesKey struct{}

// WithOutages lets calls that Outlast makes wait as long as limit for a server that is away. warn gets a
// line when an outage begins, and when it ends; nil for none.
func WithOutages(ctx context.Context, limit time.Duration, warn func(string)) context.Context {
	if limit <= 0 {
		return ctx
	}
	if warn == nil {
		warn = func(string) {}
	}
	return context.WithValue(ctx, outagesKey{}, &outages{limit: limit, warn: warn, servers: map[string]*outage{}})
}

// WithoutOutages lets calls fail at once: those that a run can do without.
func WithoutOutages(ctx context.Context) context.Context {
	return context.WithValue(ctx, outagesKey{}, (*outages)(nil))
}

// Outlast calls f again, after a pause, while isAway reports that its error is of a server that is away, for as long
// as WithOutages permits. The error is an *OutageError after that time.
func Outlast(ctx context.Context, server string, isAway func(error) bool, f func() error) error {
	all, _ := ctx.Value(outagesKey{}).(*outages)
	if all == nil {
		return f()
	}
	overtaken, answers := 0, -1
	for pause := firstOutagePause; ; pause = min(2*pause, lastOutagePause) {
		err := f()
		switch {
		case err == nil:
			all.end(server)
			return nil
		case !isAway(err) || ctx.Err() != nil:
			return err
		}
		left, answered := all.fail(server, err)
		if answers >= 0 && answered > answers {
			overtaken++
		}
		answers = answered
		switch {
		case overtaken == maxOvertaken:
			return err
		case left <= 0:
			return &OutageError{After: all.limit, Err: err}
		}
		if err := Sleep(ctx, min(pause, left)); err != nil {
			return err
		}
	}
}

// fail notes that a server is away. It returns how long it may still be, and how often it has answered since its first
// failure.
func (o *outages) fail(server string, err error) (left time.Duration, answers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.servers[server]
	if s == nil {
		s = &outage{}
		o.servers[server] = s
	}
	if s.since.IsZero() {
		s.since = time.Now()
		hint := ""
		if !s.hasAnswered {
			hint = "; it has not answered in this run yet: is its address right?"
		}
		o.warn(fmt.Sprintf("%v: rows wait for it, %s at most%s", err, o.limit, hint))
	}
	return time.Until(s.since.Add(o.limit)), s.answers
}

// end notes that a server has answered.
func (o *outages) end(server string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.servers[server]
	if s == nil {
		o.servers[server] = &outage{hasAnswered: true}
		return
	}
	s.answers++
	s.hasAnswered = true
	if !s.since.IsZero() {
		o.warn(fmt.Sprintf("%s answers again, after %s", server, time.Since(s.since).Round(time.Second)))
		s.since = time.Time{}
	}
}

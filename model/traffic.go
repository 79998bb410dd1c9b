package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Traffic holds what the models of an application share: one Limiter for each model of a
// server and credential, and one circuit breaker for each server. The zero value is ready
// to use, and safe for concurrent use.
type Traffic struct {
	// Shared returns the quota of a key that processes share. It is called for models with
	// limits; nil, or a nil quota, for that of the process.
	Shared func(key string) Quota

	mu       sync.Mutex
	limiters map[string]*Limiter
	breakers map[string]*Breaker
}

// Limiter returns the limiter of a key with at least these limits; the stricter ones of
// all calls apply. 0 means no limit.
func (t *Traffic) Limiter(key string, requests, tokens int) *Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limiters == nil {
		t.limiters = map[string]*Limiter{}
	}
	l := t.limiters[key]
	if l == nil {
		l = NewLimiter(0, 0)
		t.limiters[key] = l
	}
	wasLimited := l.restrict(requests, tokens)
	if t.Shared != nil && !wasLimited && requests+tokens > 0 {
		if shared := t.Shared(key); shared != nil {
			l.use(shared)
		}
	}
	return l
}

// Release returns to other processes what the quotas of this one have not used.
func (t *Traffic) Release(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.limiters {
		_, quota := l.settings()
		quota.Release(ctx)
	}
}

// use replaces what counts the calls.
func (l *Limiter) use(q Quota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quota = q
}

// restrict lowers the limits, and reports whether there were any.
func (l *Limiter) restrict(requests, tokens int) (wasLimited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasLimited = l.limits != Limits{}
	if requests > 0 && (l.limits.Requests == 0 || requests < l.limits.Requests) {
		l.limits.Requests = requests
	}
	if tokens > 0 && (l.limits.Tokens == 0 || tokens < l.limits.Tokens) {
		l.limits.Tokens = tokens
	}
	return wasLimited
}

// Breaker returns the circuit breaker of a server; the settings of the first call apply.
// warn receives a line when it opens and when it closes; nil for none.
func (t *Traffic) Breaker(endpoint string, failures int, openFor time.Duration, warn func(string)) *Breaker {
	if failures <= 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.breakers == nil {
		t.breakers = map[string]*Breaker{}
	}
	key := fmt.Sprint(endpoint, " ", failures, " ", openFor)
	if t.breakers[key] == nil {
		if warn == nil {
			warn = func(string) {}
		}
		t.breakers[key] = &Breaker{endpoint: endpoint, failures: failures, openFor: openFor, warn: warn}
	}
	return t.breakers[key]
}

// CircuitOpen is the Code of the Error of a call that was not sent, because too many
// calls of the server have failed.
const CircuitOpen = "circuit_open"

// Breaker stops the calls of a server that does not answer. It is closed at first. After
// a number of failures in sequence it opens, and calls fail without being sent. Then it is
// half-open: one call is sent, whose result closes or opens it. A nil one lets all calls
// through.
type Breaker struct {
	endpoint string
	failures int
	openFor  time.Duration
	warn     func(string)

	mu      sync.Mutex
	failed  int       // failures in sequence
	opened  int       // how often it has opened
	stopped int       // calls that were not sent
	until   time.Time // calls are sent again; zero while it is closed
	probing bool      // half-open: a call is under way
}

// BreakerState describes a circuit breaker that has opened.
type BreakerState struct {
	Endpoint string // the server
	Open     bool   // whether calls are not sent now
	Opened   int    // how often it has opened
	Stopped  int    // calls that were not sent
}

// Breakers returns the circuit breakers that have opened, by their servers.
func (t *Traffic) Breakers() []BreakerState {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []BreakerState
	for _, key := range slices.Sorted(maps.Keys(t.breakers)) {
		if s := t.breakers[key].state(); s.Opened > 0 {
			all = append(all, s)
		}
	}
	return all
}

func (b *Breaker) state() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BreakerState{Endpoint: b.endpoint, Open: time.Now().Before(b.until), Opened: b.opened, Stopped: b.stopped}
}

// allow returns the error of a call that must not be sent.
func (b *Breaker) allow(info Info) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return nil
	}
	wait := time.Until(b.until)
	if wait <= 0 && !b.probing {
		b.probing = true
		return nil
	}
	b.stopped++
	return &Error{Model: info.ID, Endpoint: info.Endpoint, Code: CircuitOpen, Temporary: true, RetryAfter: max(wait, time.Second),
		Message: fmt.Sprintf("not called, because %d calls of the server have failed in sequence (%s)", b.failed, CircuitOpen)}
}

// done counts the result of a call that was sent. known is false if the call ended without
// a result, such as by a cancellation.
func (b *Breaker) done(failed, known bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	open := !b.until.IsZero()
	b.probing = false
	switch {
	case !known:
	case !failed:
		b.failed, b.until = 0, time.Time{}
		if open {
			b.warn(fmt.Sprintf("%s: calls succeed again", b.endpoint))
		}
	default:
		if b.failed++; b.failed < b.failures {
			return
		}
		b.until = time.Now().Add(b.openFor)
		if !open {
			b.opened++
			b.warn(fmt.Sprintf("%s: not called for %s after %d failures in sequence", b.endpoint, shortDuration(b.openFor), b.failed))
		}
	}
}

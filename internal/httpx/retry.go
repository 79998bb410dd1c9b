// Package httpx holds what all outgoing HTTP calls share: transports, retries, and
// short reasons for network errors.
package httpx

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Policy is a retry policy. The zero Policy makes one attempt.
type Policy struct {
	MaxAttempts  int           // including the first one
	InitialDelay time.Duration // wait before the second attempt, ±50 %
	MaxDelay     time.Duration // longest wait between two attempts
}

// Attempts counts the attempts of one call. It is not safe for concurrent use.
type Attempts struct {
	policy Policy
	delays *backoff.ExponentialBackOff
	done   int
}

// Start returns the count for a call whose first attempt is about to be made.
func (p Policy) Start() *Attempts {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = p.InitialDelay
	delays.MaxInterval = p.MaxDelay
	delays.Reset()
	return &Attempts{policy: p, delays: delays, done: 1}
}

// Count returns the number of attempts.
func (a *Attempts) Count() int { return a.done }

// Next waits until the next attempt is due and reports whether there is one. There
// is none after MaxAttempts, when ctx ends, or if retryAfter, the wait that the
// server requested, exceeds MaxDelay. retryAfter is 0 if there was no such request.
func (a *Attempts) Next(ctx context.Context, retryAfter time.Duration) bool {
	if a.done >= a.policy.MaxAttempts || retryAfter > a.policy.MaxDelay {
		return false
	}
	timer := time.NewTimer(max(retryAfter, min(a.delays.NextBackOff(), a.policy.MaxDelay)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		a.done++
		return true
	}
}

// RetryAfter returns the wait in the Retry-After header, in seconds or as a date
// (RFC 9110, section 10.2.3). It returns 0 if it is absent, past or malformed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		const maxSeconds = 365 * 24 * 3600 // a longer wait is taken for an error
		if seconds > 0 && seconds < maxSeconds {
			return time.Duration(seconds * float64(time.Second))
		}
		return 0
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// Package outbound is what every HTTP call that leaves qtype shares: how it is
// connected, repeating one that failed for a passing reason, and saying in plain
// words why the network did not let one through.
package httpx

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Policy says how often and how late a call is repeated. The zero Policy tries once.
type Policy struct {
	MaxAttempts  int           // how often a call is tried in all
	InitialDelay time.Duration // the wait before the second attempt, give or take a half
	MaxDelay     time.Duration // the longest wait between two attempts
}

// Attempts counts the tries of one call. It is for one goroutine.
type Attempts struct {
	policy Policy
	delays *backoff.ExponentialBackOff
	done   int
}

// Start begins to count; the first try is under way.
func (p Policy) Start() *Attempts {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = p.InitialDelay
	delays.MaxInterval = p.MaxDelay
	delays.Reset()
	return &Attempts{policy: p, delays: delays, done: 1}
}

// Count is how many tries were made.
func (a *Attempts) Count() int { return a.done }

// Next waits until the next try is due and tells whether there is one. There
// is none once all were made, when the context ends, and when the other side
// asks to wait (asked, 0 where it does not) longer than the policy allows:
// asking earlier would only annoy it.
func (a *Attempts) Next(ctx context.Context, asked time.Duration) bool {
	if a.done >= a.policy.MaxAttempts || asked > a.policy.MaxDelay {
		return false
	}
	timer := time.NewTimer(max(asked, min(a.delays.NextBackOff(), a.policy.MaxDelay)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		a.done++
		return true
	}
}

// RetryAfter reads the header of that name, seconds or a date (RFC 9110
// 10.2.3), and 0 where it is absent, past or not to be read.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		const longest = 365 * 24 * 3600 // beyond that it is no time to wait
		if seconds > 0 && seconds < longest {
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

package model

import (
	"context"
	"slices"
	"sync"
	"time"
)

// NewQuota returns the quota of this process.
func NewQuota() Quota { return &processQuota{} }

// processQuota is the Quota of a process: a log of the calls of the last minute.
type processQuota struct {
	mu     sync.Mutex
	limits Limits      // of the last Reserve
	calls  []time.Time // start times of the calls of the last minute
	spent  []*charge   // their costs, in the order of time
	sum    int         // sum of the tokens of spent
	paused time.Time   // no call starts before
}

// charge is the counted cost of one call.
type charge struct {
	quota  *processQuota
	at     time.Time // from when it counts
	guess  int       // tokens that were estimated
	tokens int       // tokens that still count
}

// Reserve counts a call if there is room for it.
func (q *processQuota) Reserve(ctx context.Context, limits Limits, tokens int) (Charge, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.limits = limits
	q.forget(now)
	if wait := q.paused.Sub(now); wait > 0 {
		return nil, wait, nil
	}
	if limits.Requests > 0 && len(q.calls) >= limits.Requests {
		return nil, q.calls[len(q.calls)-limits.Requests].Add(minute).Sub(now), nil
	}
	if limits.Tokens > 0 && len(q.spent) > 0 && q.sum+tokens > limits.Tokens {
		return nil, q.spent[0].at.Add(minute).Sub(now), nil
	}
	if limits.Requests > 0 {
		q.calls = append(q.calls, now)
	}
	return q.charge(now, tokens), 0, nil
}

// charge counts tokens from now on.
func (q *processQuota) charge(now time.Time, tokens int) *charge {
	c := &charge{quota: q, at: now, guess: tokens, tokens: tokens}
	if q.limits.Tokens > 0 {
		q.spent, q.sum = append(q.spent, c), q.sum+tokens
	}
	return c
}

// forget removes what is older than a minute.
func (q *processQuota) forget(now time.Time) {
	old := 0
	for old < len(q.calls) && now.Sub(q.calls[old]) >= minute {
		old++
	}
	q.calls = slices.Delete(q.calls, 0, old)
	for old = 0; old < len(q.spent) && now.Sub(q.spent[old].at) >= minute; old++ {
		q.sum -= q.spent[old].tokens
		q.spent[old].tokens = 0
	}
	q.spent = slices.Delete(q.spent, 0, old)
}

// Pause delays all calls.
func (q *processQuota) Pause(_ context.Context, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if until := time.Now().Add(wait); until.After(q.paused) {
		q.paused = until
	}
}

// Release does nothing.
func (q *processQuota) Release(context.Context) {}

// Correct replaces the estimated tokens.
func (c *charge) Correct(tokens int) {
	q := c.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	beyond := tokens - c.guess
	switch {
	case q.limits.Tokens == 0:
	case beyond > 0:
		q.charge(time.Now(), beyond)
	case c.tokens > 0: // still counted
		q.sum += beyond
		c.tokens += beyond
	}
}

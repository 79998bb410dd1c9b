package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// minute is the window of a rate limit: any 60 seconds, not those of the clock.
const minute = time.Minute

// defaultAnswerTokens is the estimate for an answer before the first one.
const defaultAnswerTokens = 256

// Limits are the calls and tokens of a minute; 0 means no limit.
type Limits struct {
	Requests int // calls
	Tokens   int // tokens, read and written
}

// Quota counts the calls of a model, and their tokens, in any 60 seconds: of this process
// (NewQuota), or of all processes that share a store (package internal/sharedlimit). It is
// safe for concurrent use, with one call of Reserve at a time.
type Quota interface {
	// Reserve counts a call with its estimated tokens, at most those of limits, from now on.
	// If there is no room, the Charge is nil, and the call may be tried again after the wait.
	Reserve(ctx context.Context, limits Limits, tokens int) (Charge, time.Duration, error)
	// Pause delays all calls for a time, unless they are delayed longer already.
	Pause(ctx context.Context, wait time.Duration)
	// Release returns what other processes can use, as far as possible. The Quota can be used
	// further.
	Release(ctx context.Context)
}

// Charge is a counted call.
type Charge interface {
	// Correct replaces the estimated tokens by those of the call, once: what was not used is
	// free again, additional tokens count from now on.
	Correct(tokens int)
}

// Limiter delays the calls of one model so that the calls, and their tokens, in any 60
// seconds stay within the limits. Calls of a process wait in the order in which they came.
// The cost of a call is estimated when it begins, from its messages and the answers so far,
// and corrected when it ends. Where the provider requests a pause, all calls wait. It is
// safe for concurrent use.
//
// It is not golang.org/x/time/rate: a token bucket lets up to twice the limit through
// within 60 seconds (TestLimiter_CallsPerMinute), and does not correct a cost.
type Limiter struct {
	queue chan struct{} // held by the call that waits for room; the others wait to send, in order
	freed chan struct{} // signals the waiting call that tokens were returned

	mu     sync.Mutex
	limits Limits
	quota  Quota
	answer int // tokens of an answer, estimated from those so far
}

// NewLimiter makes a limiter of this process for calls and tokens per minute; 0 means no limit.
func NewLimiter(requests, tokens int) *Limiter {
	l := &Limiter{queue: make(chan struct{}, 1), freed: make(chan struct{}, 1), answer: defaultAnswerTokens, quota: NewQuota()}
	l.limits = Limits{Requests: requests, Tokens: tokens}
	return l
}

// Wait blocks until there is room for a call of a chat model; its error is that of the
// context or of the Quota. The Reservation must be ended by Done or Failed. A nil Limiter
// never blocks.
func (l *Limiter) Wait(ctx context.Context, info Info, req Request) (*Reservation, error) {
	if l == nil {
		return nil, nil
	}
	return l.wait(ctx, info, requestText(req), true)
}

// WaitTexts is Wait for an embedding model, which generates no text.
func (l *Limiter) WaitTexts(ctx context.Context, info Info, texts []string) (*Reservation, error) {
	if l == nil {
		return nil, nil
	}
	return l.wait(ctx, info, texts, false)
}

// requestText returns the text of a request.
func requestText(req Request) []string {
	var texts []string
	for i := range req.Messages {
		texts = append(texts, req.Messages[i].Text())
		for _, call := range req.Messages[i].Calls() {
			texts = append(texts, call.Arguments)
		}
	}
	for _, t := range req.Tools {
		texts = append(texts, t.Description, string(t.Parameters))
	}
	return texts
}

// settings returns the current limits and what counts.
func (l *Limiter) settings() (Limits, Quota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits, l.quota
}

func (l *Limiter) wait(ctx context.Context, info Info, texts []string, answered bool) (*Reservation, error) {
	guess := l.estimate(info, texts, answered)
	select {
	case l.queue <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-l.queue }()
	for {
		limits, quota := l.settings()
		charge, wait, err := quota.Reserve(ctx, limits, guess)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, fmt.Errorf("model %s: its rate limit is not available: %w", info.ID, err)
		case charge != nil:
			return &Reservation{limiter: l, charge: charge}, nil
		}
		if err := l.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// pause waits for a time, or until tokens are returned.
func (l *Limiter) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.freed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// estimate returns how many tokens a call will take. A call above the limit of a minute
// runs when no other tokens are counted.
func (l *Limiter) estimate(info Info, texts []string, answered bool) int {
	limits, _ := l.settings()
	if limits.Tokens == 0 {
		return 0
	}
	n := countTokens(info, texts)
	l.mu.Lock()
	defer l.mu.Unlock()
	if answered {
		n += l.answer
	}
	return min(n, limits.Tokens)
}

// Pause delays all calls for a time, unless they are delayed longer already.
func (l *Limiter) Pause(ctx context.Context, wait time.Duration) {
	_, quota := l.settings()
	quota.Pause(ctx, wait)
}

// Reservation is a call that a Limiter has let through. A nil one does nothing.
type Reservation struct {
	limiter *Limiter
	charge  Charge
}

// Done corrects the cost of the call; a provider that does not report it leaves the estimate.
func (c *Reservation) Done(u Usage) {
	if c == nil || u.Input+u.Output == 0 {
		return
	}
	c.limiter.mu.Lock()
	c.limiter.answer = (3*c.limiter.answer + u.Output) / 4
	c.limiter.mu.Unlock()
	c.correct(u.Input + u.Output)
}

// Failed releases the cost of a call that the provider rejected; a call that broke off
// may have cost what was estimated. Where the provider requests a pause, all calls wait,
// because they would be rejected too. A nil error changes nothing.
func (c *Reservation) Failed(ctx context.Context, err error) {
	var failure *Error
	if c == nil || !errors.As(err, &failure) || failure.Status == 0 {
		return
	}
	if failure.RetryAfter > 0 {
		c.limiter.Pause(ctx, failure.RetryAfter)
	}
	c.correct(0)
}

// correct replaces the estimate, and wakes the call that waits.
func (c *Reservation) correct(tokens int) {
	c.charge.Correct(tokens)
	select {
	case c.limiter.freed <- struct{}{}:
	default: // already signaled
	}
}

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

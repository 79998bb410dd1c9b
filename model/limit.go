package model

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// minute is the window of a rate limit: any 60 seconds, not those of the clock.
const minute = time.Minute

// defaultAnswerTokens is the estimate for an answer before the first one.
const defaultAnswerTokens = 256

// Limiter delays the calls of one model so that the calls, and their tokens, in any 60
// seconds stay within the limits. Calls wait in the order in which they came. The cost
// of a call is estimated when it begins, from its messages and the answers so far, and
// corrected when it ends. It has the calls of this process only. Where the provider
// requests a pause, all calls wait. It is safe for concurrent use.
//
// It is not golang.org/x/time/rate: a token bucket lets up to twice the limit through
// within 60 seconds (TestLimiter_CallsPerMinute), and does not correct a cost.
type Limiter struct {
	requests int           // maximum number of calls per minute, 0 for no limit
	tokens   int           // maximum number of tokens per minute, 0 for no limit
	queue    chan struct{} // held by the call that waits for room; the others wait to send, in order
	freed    chan struct{} // signals the waiting call that tokens were returned

	mu     sync.Mutex
	calls  []time.Time    // start times of the calls of the last minute
	spent  []*reservation // their costs, in the order of time
	sum    int            // sum of the tokens of spent
	paused time.Time      // no call starts before: the provider has requested a pause
	answer int            // tokens of an answer, estimated from those so far
}

// reservation is the counted cost of one call.
type reservation struct {
	at     time.Time // from when it counts
	tokens int
}

// NewLimiter makes a limiter for calls and tokens per minute; 0 means no limit.
func NewLimiter(requests, tokens int) *Limiter {
	return &Limiter{requests: requests, tokens: tokens, queue: make(chan struct{}, 1), freed: make(chan struct{}, 1), answer: defaultAnswerTokens}
}

// Wait blocks until there is room for a call of a chat model; its error is that of the
// context. The Reservation must be ended by Done or Failed. A nil Limiter never blocks.
func (l *Limiter) Wait(ctx context.Context, info Info, req Request) (*Reservation, error) {
	if l == nil {
		return nil, nil
	}
	return l.wait(ctx, l.estimate(info, requestText(req), true))
}

// WaitTexts is Wait for an embedding model, which generates no text.
func (l *Limiter) WaitTexts(ctx context.Context, info Info, texts []string) (*Reservation, error) {
	if l == nil {
		return nil, nil
	}
	return l.wait(ctx, l.estimate(info, texts, false))
}

// requestText returns the text of a request.
func requestText(req Request) []string {
	var texts []string
	for i := range req.Messages {
		texts = append(texts, req.Messages[i].Text())
		for _, call := range req.Messages[i].ToolCalls {
			texts = append(texts, call.Arguments)
		}
	}
	for _, t := range req.Tools {
		texts = append(texts, t.Description, string(t.Parameters))
	}
	return texts
}

func (l *Limiter) wait(ctx context.Context, guess int) (*Reservation, error) {
	select {
	case l.queue <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-l.queue }()
	for {
		cost, wait := l.reserve(time.Now(), guess)
		if cost != nil {
			return &Reservation{limiter: l, cost: cost, guess: guess}, nil
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
	l.mu.Lock()
	limited := l.tokens > 0
	l.mu.Unlock()
	if !limited {
		return 0
	}
	n := 0
	enc, err := tokenizer.For(info.Encoding)
	for _, text := range texts {
		if err == nil {
			n += enc.Count(text)
		} else {
			n += len(text) / 4 // about what the vocabularies give for English text
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answered {
		n += l.answer
	}
	return min(n, l.tokens)
}

// reserve counts a call if there is room for it, otherwise it returns how long to wait.
func (l *Limiter) reserve(now time.Time, guess int) (*reservation, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	if wait := l.paused.Sub(now); wait > 0 {
		return nil, wait
	}
	if l.requests > 0 && len(l.calls) >= l.requests {
		return nil, l.calls[0].Add(minute).Sub(now)
	}
	if l.tokens > 0 && l.sum+guess > l.tokens {
		return nil, l.spent[0].at.Add(minute).Sub(now)
	}
	if l.requests > 0 {
		l.calls = append(l.calls, now)
	}
	return l.charge(now, guess), 0
}

// charge counts tokens from now on.
func (l *Limiter) charge(now time.Time, tokens int) *reservation {
	c := &reservation{at: now, tokens: tokens}
	if l.tokens > 0 {
		l.spent, l.sum = append(l.spent, c), l.sum+tokens
	}
	return c
}

// forget removes what is older than a minute.
func (l *Limiter) forget(now time.Time) {
	old := 0
	for old < len(l.calls) && now.Sub(l.calls[old]) >= minute {
		old++
	}
	l.calls = slices.Delete(l.calls, 0, old)
	for old = 0; old < len(l.spent) && now.Sub(l.spent[old].at) >= minute; old++ {
		l.sum -= l.spent[old].tokens
		l.spent[old].tokens = 0
	}
	l.spent = slices.Delete(l.spent, 0, old)
}

// Pause delays all calls until a time, unless they are delayed longer already.
func (l *Limiter) Pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.paused) {
		l.paused = until
	}
}

// Reservation is a call that a Limiter has let through. A nil one does nothing.
type Reservation struct {
	limiter *Limiter
	cost    *reservation // the counted cost
	guess   int          // tokens that were estimated
}

// Done corrects the cost of the call; a provider that does not report it leaves the estimate.
func (c *Reservation) Done(u Usage) {
	if c == nil || u.Input+u.Output == 0 {
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.answer = (3*c.limiter.answer + u.Output) / 4
	c.reconcile(u.Input + u.Output)
}

// Failed releases the cost of a call that the provider rejected; a call that broke off
// may have cost what was estimated. Where the provider requests a pause, all calls wait,
// because they would be rejected too. A nil error changes nothing.
func (c *Reservation) Failed(err error) {
	var failure *Error
	if c == nil || !errors.As(err, &failure) || failure.Status == 0 {
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	if until := time.Now().Add(failure.RetryAfter); failure.RetryAfter > 0 && until.After(c.limiter.paused) {
		c.limiter.paused = until
	}
	c.reconcile(0)
}

// reconcile corrects an estimate: tokens that were not used are free again, additional
// ones count from now on.
func (c *Reservation) reconcile(tokens int) {
	l := c.limiter
	beyond := tokens - c.guess
	switch {
	case l.tokens == 0:
	case beyond > 0:
		l.charge(time.Now(), beyond)
	case c.cost.tokens > 0: // still counted
		l.sum += beyond
		c.cost.tokens += beyond
		select {
		case l.freed <- struct{}{}:
		default: // already signaled
		}
	}
}

package sharedlimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
)

const (
	leases   = 60  // of a window: for how long a grant may be used
	grains   = 240 // of a window
	maxShare = 10  // a grant is at most this part of a limit
	maxDebt  = 20  // tokens beyond estimates are charged at once from this part of the limit
	maxWaits = 12  // of a window: the longest wait, because others may return something earlier
	maxCalls = 1000
	maxTime  = 5 * time.Second // for a pause, and for what is returned at the end

	keepQuotas = 24 * time.Hour // after the last change: longer than all pauses and windows
)

// NewQuota returns the quota of a key of an application. The key may have secrets.
func NewQuota(app store.Application, key string) model.Quota { return newQuota(app, key, time.Minute) }

// NewQuotaOf returns the quota of a key with another window than a minute.
func NewQuotaOf(app store.Application, key string, window time.Duration) model.Quota {
	return newQuota(app, key, window)
}

func newQuota(app store.Application, key string, window time.Duration) *quota {
	sum := sha256.Sum256([]byte(key))
	return &quota{
		cell:  cell{records: app.Records(appstate.Quotas), id: hex.EncodeToString(sum[:16]), keep: keepQuotas},
		spans: spans{window: window, grain: window / grains},
	}
}

// quota is the model.Quota of a process: it takes the calls of up to a second from the store at
// once. What is granted counts until a minute after the last time at which it may be used.
type quota struct {
	cell  cell
	spans spans

	mu     sync.Mutex
	limits model.Limits // of the last Reserve
	held   held
	last   held      // as held was when it was granted
	paused time.Time // no call starts before
	full   time.Time // the store has no room before
	owed   int       // tokens that calls took beyond their estimates
	unused []slot    // to be returned
	took   time.Duration
}

// held is what is left of a grant.
type held struct {
	end           int64     // of its slot
	until         time.Time // when it may be used no more
	calls, tokens int
}

// charge is a call that was counted.
type charge struct {
	quota *quota
	end   int64 // of the slot
	guess int
}

// Reserve takes a call from the grant of this process, or a new grant.
func (q *quota) Reserve(ctx context.Context, limits model.Limits, tokens int) (model.Charge, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	q.mu.Lock()
	q.limits = limits
	now := time.Now()
	if c, wait := q.take(now, tokens); c != nil || wait > 0 {
		q.mu.Unlock()
		return asCharge(c), wait, nil
	}
	x := exchange{limits: limits, want: q.wanted(now, tokens), tokens: tokens}
	q.settle(&x)
	q.mu.Unlock()
	g, until, err := q.exchange(ctx, &x)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.owed += x.owed // what was not used stays counted
		return nil, 0, err
	}
	now = time.Now()
	q.paused = later(q.paused, now.Add(g.paused))
	if g.calls == 0 {
		wait := min(g.wait, q.spans.window/maxWaits)
		q.full = now.Add(wait)
		return nil, wait, nil
	}
	q.full = time.Time{}
	q.held = held{end: g.end, until: until, calls: g.calls, tokens: g.tokens}
	q.last = q.held
	c, wait := q.take(now, tokens)
	return asCharge(c), max(wait, time.Millisecond), nil // without a charge the exchange took too long
}

// asCharge returns a nil interface for nil.
func asCharge(c *charge) model.Charge {
	if c == nil {
		return nil
	}
	return c
}

// take takes a call from what is held. Without one and without a wait, a grant is needed.
// The caller holds the lock.
func (q *quota) take(now time.Time, tokens int) (*charge, time.Duration) {
	if wait := q.paused.Sub(now); wait > 0 {
		return nil, wait
	}
	h := &q.held
	isEnough := h.calls > 0 && (q.limits.Tokens == 0 || h.tokens >= tokens)
	if now.Before(h.until) && isEnough && q.owed <= q.limits.Tokens/maxDebt {
		h.calls--
		h.tokens = max(h.tokens-tokens, 0)
		return &charge{quota: q, end: h.end, guess: tokens}, 0
	}
	if wait := q.full.Sub(now); wait > 0 && len(q.unused) == 0 {
		return nil, wait
	}
	return nil, 0
}

// wanted returns the calls of the next grant: more than those of the last one if it was used
// before its end. The caller holds the lock.
func (q *quota) wanted(now time.Time, tokens int) int {
	used := q.last.calls - q.held.calls
	want := used + used/4 + 1
	if now.Before(q.held.until) {
		want = 2*used + 1
	}
	most := maxCalls
	if q.limits.Requests > 0 {
		most = q.limits.Requests / maxShare
	}
	if tokens > 0 {
		most = min(most, q.limits.Tokens/maxShare/tokens)
	}
	return max(min(want, most), 1)
}

// settle moves what is to be returned and charged to an exchange. The caller holds the lock.
func (q *quota) settle(x *exchange) {
	if q.held.calls > 0 || q.held.tokens > 0 {
		u := slot{End: q.held.end, Tokens: q.held.tokens}
		if q.limits.Requests > 0 {
			u.Calls = q.held.calls
		}
		q.addUnused(u)
	}
	x.unused, x.owed = q.unused, q.owed
	q.held, q.unused, q.owed = held{}, nil, 0
}

// addUnused notes what is to be returned. The caller holds the lock.
func (q *quota) addUnused(u slot) {
	i := slices.IndexFunc(q.unused, func(s slot) bool { return s.End == u.End })
	if i < 0 {
		q.unused = append(q.unused, u)
		return
	}
	q.unused[i].Calls += u.Calls
	q.unused[i].Tokens += u.Tokens
}

// exchange makes an exchange with the store; until is the time until which a grant may be used.
func (q *quota) exchange(ctx context.Context, x *exchange) (g grant, until time.Time, err error) {
	q.mu.Lock()
	lease := min(max(q.spans.window/leases, 4*q.took), q.spans.window/2) // a slow store needs a longer one
	q.mu.Unlock()
	var took time.Duration
	err = q.cell.update(ctx, func(r reading) ([]byte, error) {
		l, err := decodeCounts(r.value)
		if err != nil {
			return nil, err
		}
		if r.uncertain {
			x.unused = nil // it may have been returned
		}
		var changed bool
		g, changed = l.do(x, r.now, lease, q.spans)
		until, took = r.began.Add(lease), time.Since(r.began)
		if !changed {
			return nil, nil
		}
		return json.Marshal(l)
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.took = 2 * took // until the answer to the change
	return g, until, err
}

// Pause delays the calls of all processes.
func (q *quota) Pause(ctx context.Context, wait time.Duration) {
	q.mu.Lock()
	q.paused = later(q.paused, time.Now().Add(wait))
	x := exchange{limits: q.limits, pause: wait}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTime)
	defer cancel()
	_, _, _ = q.exchange(ctx, &x) // a store that does not answer ends the next call
}

// Release returns what was not used.
func (q *quota) Release(ctx context.Context) {
	q.mu.Lock()
	x := exchange{limits: q.limits}
	q.settle(&x)
	q.mu.Unlock()
	if len(x.unused) == 0 && x.owed == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTime)
	defer cancel()
	_, _, _ = q.exchange(ctx, &x) // otherwise it counts for a minute
}

// Correct replaces the estimated tokens.
func (c *charge) Correct(tokens int) {
	q := c.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	beyond := tokens - c.guess
	isHeld := time.Now().Before(q.held.until)
	switch {
	case q.limits.Tokens == 0:
	case beyond > 0 && isHeld && q.held.tokens >= beyond:
		q.held.tokens -= beyond
	case beyond > 0:
		q.owed += beyond
	case beyond < 0 && isHeld && q.held.end == c.end:
		q.held.tokens -= beyond
	case beyond < 0:
		q.addUnused(slot{End: c.end, Tokens: -beyond})
	}
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

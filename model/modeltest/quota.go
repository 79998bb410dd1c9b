package modeltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/model"
)

// Quotas is an implementation of model.Quota that is tested.
type Quotas struct {
	Window time.Duration                             // that of the limits
	Open   func(t testing.TB) (a, b model.Quota)     // two users of one new quota, such as two processes
	Within func(t *testing.T, test func(*testing.T)) // runs a test, such as synctest.Test; nil to call it
}

// Call is a call that a quota has let through, at some time between two others.
type Call struct {
	After, Before time.Time
	Tokens        int
}

// TestQuota tests what all implementations have in common.
func TestQuota(t *testing.T, q Quotas) {
	if q.Within == nil {
		q.Within = func(t *testing.T, test func(*testing.T)) { test(t) }
	}
	for name, test := range map[string]func(*testing.T){
		"calls":     func(t *testing.T) { q.many(t, model.Limits{Requests: 20}, 0) },
		"tokens":    func(t *testing.T) { q.many(t, model.Limits{Tokens: 200}, 10) },
		"both":      func(t *testing.T) { q.many(t, model.Limits{Requests: 20, Tokens: 150}, 10) },
		"no limits": q.unlimited,
		"corrected": q.corrected,
		"paused":    q.paused,
		"canceled":  q.canceled,
	} {
		t.Run(name, func(t *testing.T) { q.Within(t, test) })
	}
}

// many makes three times as many calls as a window may have.
func (q Quotas) many(t *testing.T, limits model.Limits, tokens int) {
	var mu sync.Mutex
	var calls []Call
	var group sync.WaitGroup
	a, b := q.Open(t)
	for _, user := range []model.Quota{a, b} {
		group.Go(func() {
			for range 30 {
				c, err := Reserve(t.Context(), user, limits, tokens)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				calls = append(calls, c)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	CheckCalls(t, calls, limits, q.Window)
}

// Reserve waits until there is room for a call.
func Reserve(ctx context.Context, q model.Quota, limits model.Limits, tokens int) (Call, error) {
	for {
		c := Call{After: time.Now(), Tokens: tokens}
		charge, wait, err := q.Reserve(ctx, limits, tokens)
		c.Before = time.Now()
		if err != nil || charge != nil {
			return c, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}

// CheckCalls fails if more calls than the limits allow were certainly within one window.
func CheckCalls(t testing.TB, calls []Call, limits model.Limits, window time.Duration) {
	t.Helper()
	for _, first := range calls {
		n, tokens := 0, 0
		for _, c := range calls {
			if !c.After.Before(first.After) && c.Before.Before(first.After.Add(window)) {
				n, tokens = n+1, tokens+c.Tokens
			}
		}
		if limits.Requests > 0 && n > limits.Requests || limits.Tokens > 0 && tokens > limits.Tokens {
			t.Errorf("%d calls with %d tokens within %s, allowed are %+v", n, tokens, window, limits)
			return
		}
	}
}

func (q Quotas) unlimited(t *testing.T) {
	a, b := q.Open(t)
	for range 100 {
		for _, user := range []model.Quota{a, b} {
			charge, wait, err := user.Reserve(t.Context(), model.Limits{}, 0)
			if charge == nil && wait > time.Millisecond || err != nil { // a grant may take too long to come
				t.Fatalf("a call must wait for %s: %v", wait, err)
			}
		}
	}
}

// corrected returns tokens, and charges additional ones.
func (q Quotas) corrected(t *testing.T) {
	limits := model.Limits{Tokens: 100}
	a, _ := q.Open(t)
	reserve := func(tokens int) (charge model.Charge, wait time.Duration) {
		for { // a grant that took too long to come is wanted again
			charge, wait, err := a.Reserve(t.Context(), limits, tokens)
			if err != nil {
				t.Fatal(err)
			}
			if charge != nil || wait > time.Millisecond {
				return charge, wait
			}
			time.Sleep(wait)
		}
	}
	first, _ := reserve(100)
	if first == nil {
		t.Fatal("a call with all tokens must run alone")
	}
	first.Correct(10)
	second, _ := reserve(90)
	if second == nil {
		t.Fatal("the tokens that were not used are not free")
	}
	second.Correct(190)
	if third, wait := reserve(10); third != nil || wait <= 0 {
		t.Error("additional tokens are not counted")
	}
}

// paused delays the calls of both users.
func (q Quotas) paused(t *testing.T) {
	a, b := q.Open(t)
	a.Pause(t.Context(), q.Window/4)
	end := time.Now().Add(q.Window / 8) // b knows of the pause by the other one's clock
	for _, user := range []model.Quota{a, b} {
		c, err := Reserve(t.Context(), user, model.Limits{Requests: 100}, 0)
		if err != nil || c.Before.Before(end) {
			t.Errorf("a call %s before the end of the pause: %v", end.Sub(c.Before), err)
		}
	}
}

func (q Quotas) canceled(t *testing.T) {
	a, _ := q.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.Reserve(ctx, model.Limits{Requests: 1}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

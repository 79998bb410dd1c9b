package model_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// metered is a server that accepts a number of calls per minute of its clock and rejects
// the others as providers do.
type metered struct {
	limit int
	wait  func(left time.Duration) time.Duration // what a rejection requests

	mu       sync.Mutex
	window   time.Time
	accepted int
	rejected int
}

func (m *metered) Info() model.Info {
	return model.Info{ID: "m", Endpoint: "http://a", Encoding: "o200k_base"}
}

func (m *metered) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		m.mu.Lock()
		now := time.Now()
		if now.Sub(m.window) >= time.Minute {
			m.window, m.accepted = now, 0
		}
		accepted, left := m.accepted < m.limit, m.window.Add(time.Minute).Sub(now)
		if accepted {
			m.accepted++
		} else {
			m.rejected++
		}
		m.mu.Unlock()
		if accepted {
			yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, "ok"), Usage: model.Usage{Input: 5, Output: 5}}}, nil)
			return
		}
		yield(model.Event{}, &model.Error{Model: "m", Status: http.StatusTooManyRequests, Message: "slow down", Temporary: true, RetryAfter: m.wait(left)})
	}
}

// 80 rows for a provider that accepts 60 calls a minute: no row fails for any wait that
// the provider requests, and few calls are rejected.
func TestWithRetry_ProviderLimit(t *testing.T) {
	for name, wait := range map[string]func(time.Duration) time.Duration{
		"the rest of the window": func(left time.Duration) time.Duration { return left },
		"a second":               func(time.Duration) time.Duration { return time.Second },
		"nothing":                func(time.Duration) time.Duration { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, traffic := &metered{limit: 60, wait: wait}, &model.Traffic{}
				m := model.WithRetry(server, model.CallPolicy{Timeout: time.Minute, MaxAttempts: 3, InitialDelay: 500 * time.Millisecond, MaxDelay: 30 * time.Second,
					MaxWait: 10 * time.Minute, Limit: traffic.Limiter("k", 0, 0), Breaker: traffic.Breaker("http://a", 20, 30*time.Second, nil)})
				begin := time.Now()
				ask(t, m, 80)
				if took := time.Since(begin); took > 3*time.Minute {
					t.Errorf("80 calls took %s", took)
				}
				if name == "the rest of the window" && server.rejected > 20 {
					t.Errorf("%d calls were rejected", server.rejected)
				}
			})
		})
	}
}

// A call does not wait longer than MaxWait, and not at all without retries.
func TestWithRetry_MaxWait(t *testing.T) {
	for name, tt := range map[string]struct {
		attempts int
		want     time.Duration
	}{"retries": {3, 2 * time.Minute}, "no retries": {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			server := &metered{wait: func(time.Duration) time.Duration { return 50 * time.Second }}
			m := model.WithRetry(server, model.CallPolicy{MaxAttempts: tt.attempts, MaxDelay: time.Second, MaxWait: 2 * time.Minute, Limit: model.NewLimiter(0, 0)})
			begin := time.Now()
			_, err := model.Call(t.Context(), m, model.Request{}, nil)
			var e *model.Error
			if !errors.As(err, &e) || e.Status != http.StatusTooManyRequests || time.Since(begin) > tt.want {
				t.Errorf("%s: %v after %s", name, err, time.Since(begin))
			}
		})
	}
}

// Waits for the rate limit grow although the provider requests short ones: a call that is
// rejected for ten minutes is sent a few times only.
func TestWithRetry_ShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &metered{wait: func(time.Duration) time.Duration { return 200 * time.Millisecond }}
		m := model.WithRetry(server, model.CallPolicy{MaxAttempts: 3, MaxDelay: time.Second, MaxWait: 10 * time.Minute, Limit: model.NewLimiter(0, 0)})
		_, err := model.Call(t.Context(), m, model.Request{}, nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Status != http.StatusTooManyRequests || server.rejected > 20 {
			t.Errorf("%v after %d rejections", err, server.rejected)
		}
	})
}

// Models with one key share their limits, the stricter of which applies.
func TestTraffic_Limiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var traffic model.Traffic
		a := &answering{id: "a"}
		first := model.WithRetry(a, model.CallPolicy{Limit: traffic.Limiter("k", 50, 0)})
		second := model.WithRetry(a, model.CallPolicy{Limit: traffic.Limiter("k", 10, 0)})
		ask(t, first, 10)
		ask(t, second, 10)
		if n := maxPerMinute(a.at); n != 10 {
			t.Errorf("%d calls in a minute", n)
		}
	})
}

// Headers that report used up limits delay the next calls.
func TestWithRetry_NextAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{info: model.Info{ID: "m"}, responses: []model.Response{{Message: chat.Text(chat.Assistant, "ok"), NextAfter: 20 * time.Second}}}
		m := model.WithRetry(s, model.CallPolicy{Limit: model.NewLimiter(0, 0)})
		begin := time.Now()
		for range 3 {
			if _, err := model.Call(t.Context(), m, model.Request{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 40*time.Second {
			t.Errorf("3 calls took %s", took)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var traffic model.Traffic
		var warned []string
		down := &answering{id: "m", fail: &model.Error{Status: 503, Message: "down", Temporary: true}}
		policy := model.CallPolicy{MaxAttempts: 1, Breaker: traffic.Breaker("http://a", 3, 30*time.Second, func(text string) { warned = append(warned, text) })}
		m := model.WithRetry(down, policy)
		call := func() *model.Error {
			_, err := model.Call(t.Context(), m, model.Request{}, nil)
			var e *model.Error
			errors.As(err, &e)
			return e
		}
		for range 3 {
			if e := call(); e == nil || e.Status != 503 {
				t.Fatalf("closed: %v", e)
			}
		}
		if e := call(); e == nil || e.Code != model.CircuitOpen || e.RetryAfter != 30*time.Second || down.calls.Load() != 3 ||
			!strings.Contains(e.Error(), "not called, because 3 calls of the server have failed in sequence (circuit_open)") {
			t.Fatalf("open: %v after %d calls", e, down.calls.Load())
		}
		other := model.WithRetry(down, model.CallPolicy{Breaker: traffic.Breaker("http://b", 3, 30*time.Second, nil)})
		if _, err := model.Call(t.Context(), other, model.Request{}, nil); err == nil || strings.Contains(err.Error(), model.CircuitOpen) {
			t.Errorf("another server: %v", err)
		}
		time.Sleep(30 * time.Second)
		if e := call(); e == nil || e.Status != 503 {
			t.Fatalf("half-open: %v", e)
		}
		if e := call(); e == nil || e.Code != model.CircuitOpen {
			t.Fatalf("open again: %v", e)
		}
		time.Sleep(30 * time.Second)
		down.fail = nil
		for range 2 {
			if e := call(); e != nil {
				t.Fatalf("closed again: %v", e)
			}
		}
		if got := strings.Join(warned, "; "); got != "http://a: not called for 30s after 3 failures in sequence; http://a: calls succeed again" {
			t.Error(got)
		}
		down.fail = &model.Error{Status: 400, Message: "bad"}
		for range 5 {
			if e := call(); e == nil || e.Status != 400 {
				t.Errorf("errors of requests do not open it: %v", e)
			}
		}
	})
}

// Only one call is sent while it is half-open, and a canceled one does not block it.
func TestBreaker_HalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var traffic model.Traffic
		server := &answering{id: "m", fail: &model.Error{Status: 500, Message: "down", Temporary: true}}
		m := model.WithRetry(server, model.CallPolicy{Breaker: traffic.Breaker("http://a", 1, time.Second, nil)})
		_, _ = model.Call(t.Context(), m, model.Request{}, nil)
		time.Sleep(time.Second)
		server.fail, server.takes = nil, time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _, _ = model.Call(ctx, m, model.Request{}, nil) })
		synctest.Wait()
		var e *model.Error
		if _, err := model.Call(t.Context(), m, model.Request{}, nil); !errors.As(err, &e) || e.Code != model.CircuitOpen {
			t.Errorf("a second call: %v", err)
		}
		cancel()
		group.Wait()
		if _, err := model.Call(t.Context(), m, model.Request{}, nil); err != nil {
			t.Errorf("after a cancellation: %v", err)
		}
	})
}

package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// answering is a model whose calls take some time and are counted.
type answering struct {
	id     string
	takes  time.Duration
	usage  model.Usage
	fail   error  // the error of calls; nil for none
	begins string // a delta before the end of a call
	calls  atomic.Int64
	mu     sync.Mutex
	at     []time.Time     // start times of the calls
	before []model.Failure // see model.FailuresBefore
}

func (a *answering) Info() model.Info {
	return model.Info{ID: a.id, Encoding: "o200k_base"}
}

func (a *answering) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		a.calls.Add(1)
		a.mu.Lock()
		a.at, a.before = append(a.at, time.Now()), model.FailuresBefore(ctx)
		a.mu.Unlock()
		select {
		case <-time.After(a.takes):
		case <-ctx.Done():
			yield(model.Event{}, ctx.Err())
			return
		}
		if a.begins != "" && !yield(model.Event{Text: a.begins}, nil) {
			return
		}
		if a.fail != nil {
			yield(model.Event{}, a.fail)
			return
		}
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, "from "+a.id), Usage: a.usage}}, nil)
	}
}

// ask sends n calls at the same time and waits for all.
func ask(t *testing.T, m model.Chat, n int) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "hello there")}}
			if _, err := model.Call(t.Context(), m, req, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// maxPerMinute returns the maximum number of calls that began within any minute.
func maxPerMinute(at []time.Time) int {
	best := 0
	for i := range at {
		n := 0
		for j := i; j < len(at) && at[j].Sub(at[i]) < time.Minute; j++ {
			n++
		}
		best = max(best, n)
	}
	return best
}

func TestLimiter_CallsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &answering{id: "m", takes: 300 * time.Millisecond}
		limited := model.WithRetry(m, model.CallPolicy{Timeout: time.Second, Limit: model.NewLimiter(10, 0)})
		began := time.Now()
		ask(t, limited, 35) // they wait longer than the timeout, which does not include the wait
		if got := maxPerMinute(m.at); got != 10 {
			t.Errorf("%d calls within a minute, want 10", got)
		}
		if took := time.Since(began); took < 3*time.Minute || took > 3*time.Minute+time.Second {
			t.Errorf("35 calls took %s, want a little over 3 minutes", took)
		}
	})
}

func TestLimiter_TokensPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &answering{id: "m", takes: time.Second, usage: model.Usage{Input: 60, Output: 40}}
		limited := model.WithRetry(m, model.CallPolicy{Limit: model.NewLimiter(0, 1000)})
		began := time.Now()
		for range 30 {
			ask(t, limited, 1)
		}
		if got := maxPerMinute(m.at); got > 10 {
			t.Errorf("%d calls of 100 tokens within a minute, 1000 are allowed", got)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("3,000 tokens took %s", took)
		}
	})
}

func TestLimiter_OversizedCallRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &answering{id: "m", usage: model.Usage{Input: 5000}}
		limited := model.WithRetry(m, model.CallPolicy{Limit: model.NewLimiter(0, 100)})
		ask(t, limited, 3)
		if got := maxPerMinute(m.at); got != 1 {
			t.Errorf("%d calls within a minute", got)
		}
	})
}

func TestLimiter_RetryAfterDelaysAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &answering{id: "m", fail: &model.Error{Model: "m", Status: 429, Message: "slow down", RetryAfter: 20 * time.Second, Temporary: true}}
		limit := model.NewLimiter(1000, 0)
		p := model.CallPolicy{MaxAttempts: 2, InitialDelay: time.Second, MaxDelay: time.Minute, Limit: limit}
		_, err := model.Call(t.Context(), model.WithRetry(m, p), model.Request{}, nil)
		var failure *model.Error
		if !errors.As(err, &failure) || failure.Attempts != 2 {
			t.Fatal(err)
		}
		began := time.Now()
		ask(t, model.WithRetry(&answering{id: "m"}, p), 1)
		if waited := time.Since(began); waited != 20*time.Second {
			t.Errorf("the next call waited %s", waited)
		}
	})
}

func TestLimiter_WaitCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.WithRetry(&answering{id: "m"}, model.CallPolicy{Limit: model.NewLimiter(1, 0)})
		ask(t, m, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := model.Call(ctx, m, model.Request{}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestWithFallbacks_Order(t *testing.T) {
	down := func(id string, status int) *answering {
		return &answering{id: id, fail: &model.Error{Model: id, Status: status, Message: "no", Dropped: []string{"tools of " + id}}}
	}
	a, b, c, d := down("a", 500), down("b", 401), &answering{id: "c"}, &answering{id: "d"}
	resp, err := model.Call(t.Context(), model.WithFallbacks(a, b, c, d), model.Request{}, nil)
	if err != nil || resp.Model != "c" || resp.Message.Text() != "from c" || d.calls.Load() != 0 {
		t.Fatalf("%+v, %v", resp, err)
	}
	if strings.Join(resp.Dropped, ", ") != "tools of a, tools of b" || len(resp.Failed) != 2 || resp.Failed[0].Model != "a" || resp.Failed[0].Status != 500 || resp.Failed[0].Message != "model a: HTTP 500: no" || resp.Failed[1].Reason() != "HTTP 401" {
		t.Errorf("the answer of the fallback has the reasons %+v", resp.Failed)
	}
	if len(c.before) != 2 || a.before != nil {
		t.Errorf("the fallback knows %v", c.before)
	}
	resp, err = model.Call(t.Context(), model.WithFallbacks(c, d), model.Request{}, nil)
	if err != nil || resp.Model != "" {
		t.Fatalf("the model itself answered as %q: %v", resp.Model, err)
	}
	_, err = model.Call(t.Context(), model.WithFallbacks(a, b), model.Request{}, nil)
	var all *model.FallbackError
	if !errors.As(err, &all) || len(all.Errors) != 2 || err.Error() != "model a: HTTP 500: no; its fallback b: HTTP 401: no" {
		t.Errorf("got %v", err)
	}
	var first *model.Error
	if !errors.As(err, &first) || first.Model != "a" {
		t.Errorf("the model's own error is not to be found: %v", err)
	}
}

func TestWithFallbacks_NoneAfterFirstDelta(t *testing.T) {
	a := &answering{id: "a", begins: "I think", fail: &model.Error{Model: "a", Status: 500, Message: "no"}}
	b := &answering{id: "b"}
	_, err := model.Call(t.Context(), model.WithFallbacks(a, b), model.Request{Stream: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "HTTP 500") || b.calls.Load() != 0 {
		t.Errorf("b was asked %d times, %v", b.calls.Load(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := &answering{id: "slow", takes: time.Hour}
	if _, err := model.Call(ctx, model.WithFallbacks(slow, b), model.Request{}, nil); !errors.Is(err, context.Canceled) || b.calls.Load() != 0 {
		t.Errorf("after the end b was asked %d times, %v", b.calls.Load(), err)
	}
	plain := &answering{id: "plain", fail: fmt.Errorf("a defect")}
	if _, err := model.Call(t.Context(), model.WithFallbacks(plain, b), model.Request{}, nil); err == nil || b.calls.Load() != 0 {
		t.Errorf("b was asked %d times, %v", b.calls.Load(), err)
	}
}

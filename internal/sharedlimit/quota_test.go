package sharedlimit_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/internal/testkit"
	memstore "github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

func TestMain(m *testing.M) {
	testkit.AllowWaiting()
	goleak.VerifyTestMain(m)
}

func TestQuota_InProcess(t *testing.T) {
	open := func(testing.TB) (a, b model.Quota) {
		store := inprocess.New()
		return sharedlimit.NewQuota(in(store), "key"), sharedlimit.NewQuota(in(store), "key")
	}
	modeltest.TestQuota(t, modeltest.Quotas{Window: time.Minute, Open: open, Within: synctest.Test})
}

// in returns the application of the tests in a store.
func in(s memstore.Store) memstore.Application { return memstore.NewApplication(s, "app") }

// TestQuota_Property: users that call at random times, some of which end without a word, never
// exceed the limits of any minute.
func TestQuota_Property(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			limits := model.Limits{Requests: 50 + random.IntN(400), Tokens: 1000 + random.IntN(5000)}
			store := inprocess.New()
			var mu sync.Mutex
			var calls []modeltest.Call
			var group sync.WaitGroup
			for range 3 {
				own := rand.New(rand.NewPCG(random.Uint64(), 2))
				group.Go(func() {
					q := sharedlimit.NewQuota(in(store), "key")
					for range 500 {
						time.Sleep(time.Duration(own.IntN(400)) * time.Millisecond)
						if own.IntN(50) == 0 {
							q = sharedlimit.NewQuota(in(store), "key")
						}
						c, err := modeltest.Reserve(t.Context(), q, limits, own.IntN(40))
						if err != nil {
							t.Error(err)
						}
						c.After = c.Before // a moment of the clock of synctest
						mu.Lock()
						calls = append(calls, c)
						mu.Unlock()
					}
				})
			}
			group.Wait()
			modeltest.CheckCalls(t, calls, limits, time.Minute)
		})
	}
}

// TestQuota_StoreDown: calls end with the error of the store, not without a limit, and go on
// after its return.
func TestQuota_StoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: inprocess.New()}
		limits := model.Limits{Requests: 10}
		q := sharedlimit.NewQuota(in(store), "key")
		_, err := modeltest.Reserve(t.Context(), q, limits, 0)
		testkit.Must(t, err)
		store.down = true
		time.Sleep(time.Minute)
		if c, _, err := q.Reserve(t.Context(), limits, 0); c != nil || err == nil {
			t.Errorf("a call without the store: %v", err)
		}
		store.down = false
		var calls []modeltest.Call
		for range 25 {
			c, err := modeltest.Reserve(t.Context(), q, limits, 0)
			testkit.Must(t, err)
			calls = append(calls, c)
		}
		modeltest.CheckCalls(t, calls, limits, time.Minute)
	})
}

// TestQuota_UncertainChange: if it is not known whether a store has made a change, because
// another process has changed the quota since, what it returned is not returned again.
func TestQuota_UncertainChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: inprocess.New()}
		limits := model.Limits{Tokens: 1000}
		q, other, third := sharedlimit.NewQuota(in(store), "key"), sharedlimit.NewQuota(in(store), "key"), sharedlimit.NewQuota(in(store), "key")
		reserve := func(q model.Quota, tokens int) model.Charge {
			charge, _, err := q.Reserve(t.Context(), limits, tokens)
			if charge == nil || err != nil {
				t.Fatalf("no charge: %v", err)
			}
			return charge
		}
		first := reserve(q, 100)
		reserve(other, 100)
		time.Sleep(2 * time.Second)
		first.Correct(10)
		store.lose = func() { reserve(third, 100) }
		reserve(q, 5)
		counted, err := sharedlimit.Counted(t.Context(), in(store), "key")
		testkit.Must(t, err)
		if taken := 10 + 100 + 100 + 5; counted < taken {
			t.Errorf("%d tokens count, but calls took %d", counted, taken)
		}
	})
}

// flaky is a store that does not answer.
type flaky struct {
	memstore.Store
	down bool
	lose func() // called after a change that is not answered; nil for none
}

var errDown = &memstore.Error{Location: "test", Problem: memstore.Unavailable, Message: "no answer", Temporary: true}

func (f *flaky) Head(ctx context.Context, k memstore.Key) (memstore.Head, error) {
	if f.down {
		return memstore.Head{}, errDown
	}
	return f.Store.Head(ctx, k)
}

func (f *flaky) Apply(ctx context.Context, k memstore.Key, c memstore.Change) error {
	err := f.Store.Apply(ctx, k, c)
	if lose := f.lose; err == nil && lose != nil {
		f.lose = nil
		lose()
		return errDown
	}
	return err
}

// BenchmarkQuota counts the calls of the store for 1,000 calls of a model in a second.
func BenchmarkQuota(b *testing.B) {
	store := &counting{Store: inprocess.New()}
	q := sharedlimit.NewQuota(in(store), "key")
	limits := model.Limits{Requests: 1e12, Tokens: 1e15}
	for b.Loop() {
		charge, _, err := q.Reserve(b.Context(), limits, 500)
		testkit.Must(b, err)
		if charge != nil {
			charge.Correct(480)
		}
	}
	b.ReportMetric(float64(store.n)/float64(b.N), "changes/op")
}

// counting counts the changes of a store.
type counting struct {
	memstore.Store
	n int
}

func (c *counting) Apply(ctx context.Context, k memstore.Key, change memstore.Change) error {
	c.n++
	return c.Store.Apply(ctx, k, change)
}

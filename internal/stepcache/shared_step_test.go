package stepcache

import (
	"context"
	"encoding/base64"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	memstore "github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// troubled is a store that fails while err is set.
type troubled struct {
	memstore.Store
	err   error
	calls int
}

func (s *troubled) Head(ctx context.Context, key memstore.Key) (memstore.Head, error) {
	s.calls++
	if s.err != nil {
		return memstore.Head{}, s.err
	}
	return s.Store.Head(ctx, key)
}

// sharedEcho returns a func that runs a row through a step with a cache in a store, and reports whether its result was in it.
func sharedEcho(t *testing.T, store memstore.Store, warn func(string)) func(text string) bool {
	var hits, misses atomic.Int64
	step := NewStep(echo{}, StepConfig{Cache: NewSharedCache(NewShared(memstore.NewApplication(store, "app")), warn), Scope: Scope{Step: "echo", Version: "1"},
		Inputs: Ports{[]string{"in"}, []int{0}}, Outputs: Ports{[]string{"out"}, []int{1}}, Hits: &hits, Misses: &misses})
	return func(text string) bool {
		before := hits.Load()
		row := &steps.Row{Values: []any{any(text), any(value.Unset)}}
		if err := step.Process(t.Context(), row, func(*steps.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		return hits.Load() > before
	}
}

// TestSharedCache_Outage: a server that fails in any way is asked once, and again after some time.
func TestSharedCache_Outage(t *testing.T) {
	for _, problem := range []memstore.ErrorKind{memstore.Unavailable, memstore.Full, memstore.Denied} {
		synctest.Test(t, func(t *testing.T) {
			store := &troubled{Store: inprocess.New(), err: &memstore.Error{Problem: problem, Message: "failed"}}
			warnings := 0
			found := sharedEcho(t, store, func(string) { warnings++ })
			if found("a") || found("b") || store.calls != 1 || warnings != 1 {
				t.Errorf("%s: %d calls, %d warnings", problem, store.calls, warnings)
			}
			store.err = nil
			time.Sleep(retryPause + time.Second)
			if found("a") || !found("a") {
				t.Errorf("%s: not used again", problem)
			}
		})
	}
}

// TestSharedCache_WrongKey: an entry that was encrypted with a key which is gone is computed again, and replaced.
func TestSharedCache_WrongKey(t *testing.T) {
	inner := inprocess.New()
	with := func(key string) memstore.Store {
		keys, err := encrypted.ParseKeys(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(key, 32))))
		if err != nil {
			t.Fatal(err)
		}
		return encrypted.New(inner, "there", encrypted.Keys{Key: keys[0]})
	}
	if found := sharedEcho(t, with("a"), nil); found("x") || !found("x") {
		t.Fatal("not stored")
	}
	found := sharedEcho(t, with("b"), func(text string) { t.Error(text) })
	if found("x") || !found("x") {
		t.Error("not stored again")
	}
}

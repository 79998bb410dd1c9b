package temporal

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestGate: as many requests start and wait as there are places, and others are refused with the time after which to try again.
func TestGate(t *testing.T) {
	g := newGate(1, 1)
	leave, err := g.enter(t.Context())
	testkit.Must(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	entered := make(chan func())
	go func() {
		next, _ := g.enter(t.Context())
		entered <- next
	}()
	for g.waiting.Load() < 2 { // until it waits
		select {
		case <-entered:
			t.Fatal("a request does not wait for a place")
		default:
		}
	}
	if _, err := g.enter(t.Context()); problem.Of(err) == nil || problem.Of(err).Status != http.StatusServiceUnavailable || problem.Of(err).RetryAfter != startRetry {
		t.Errorf("got %v", err)
	}
	leave()
	leave()
	(<-entered)()
	if n := g.waiting.Load(); n != 0 || len(g.places) != 0 {
		t.Errorf("%d requests wait, %d have places", n, len(g.places))
	}
}

package tool_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/tool"
)

// Requests of a round are announced together, in the order of the calls, once the other
// calls have ended.
func TestRound_AnnouncesTogether(t *testing.T) {
	r := tool.NewRound(4)
	var announced [][]any
	commit := func(all []any) { announced = append(announced, all) }
	calls := make([]context.Context, 4)
	ended := make([]func(), 4)
	for i := range calls {
		calls[i], ended[i] = r.Join(t.Context(), i)
	}
	tool.Announce(calls[2], "c", commit)
	ended[1]() // it failed before it needed the client
	tool.Announce(calls[0], "a", commit)
	if announced != nil {
		t.Fatalf("announced %v before the last call", announced)
	}
	ended[3]()
	if len(announced) != 1 || !slices.Equal(announced[0], []any{"a", "c"}) {
		t.Fatalf("announced %v", announced)
	}
	tool.Announce(calls[0], "again", commit)
	ended[0]()
	ended[2]()
	if len(announced) != 2 || !slices.Equal(announced[1], []any{"again"}) {
		t.Errorf("announced %v", announced)
	}
}

func TestRound_Concurrent(t *testing.T) {
	const n = 50
	r := tool.NewRound(n)
	var got []any
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			ctx, ended := r.Join(t.Context(), i)
			defer ended()
			if i%3 == 0 {
				tool.Announce(ctx, i, func(all []any) { got = append(got, all...) })
			}
		})
	}
	running.Wait()
	if len(got) != 17 || !slices.IsSortedFunc(got, func(a, b any) int { return a.(int) - b.(int) }) {
		t.Errorf("announced %v", got)
	}
}

// Without a round each request is announced at once.
func TestAnnounce_WithoutRound(t *testing.T) {
	var got []any
	tool.Announce(t.Context(), "x", func(all []any) { got = all })
	if !slices.Equal(got, []any{"x"}) {
		t.Errorf("announced %v", got)
	}
}

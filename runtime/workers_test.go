package runtime

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// TestWorkers_Speedup: with a step that only waits, 64 workers need a 32nd of the time
// of 2, and the rows keep their order.
func TestWorkers_Speedup(t *testing.T) {
	const rows = 6400
	wait := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		time.Sleep(50 * time.Millisecond)
		return emit(row)
	}
	took := map[int]time.Duration{}
	for _, workers := range []int{2, 64} {
		synctest.Test(t, func(t *testing.T) { // a fake clock, which does not advance while code runs
			began := time.Now()
			out, err := drive(t.Context(), []stage{{nodes: []*node{nodeFor("wait", stepFunc(wait))}, workers: workers}}, rows)
			took[workers] = time.Since(began)
			if err != nil || len(out) != rows {
				t.Fatal(len(out), err)
			}
			if got := firsts(out); !slices.IsSortedFunc(got, func(a, b any) int { return a.(int) - b.(int) }) {
				t.Error("the rows are out of order")
			}
		})
	}
	if ratio := took[2].Seconds() / took[64].Seconds(); ratio < 30 {
		t.Errorf("2 workers took %s, 64 took %s: %.1f times", took[2], took[64], ratio)
	}
}

package sharedlimit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/internal/testkit"
	memstore "github.com/qtype-dev/qtype/memory/store"
)

func TestBudget(t *testing.T) {
	b := sharedlimit.NewBudget(in(inprocess.New()), "run")
	for i, step := range []struct{ partition, chunk, calls, want int }{
		{0, 0, 0, 0}, {0, 0, 3, 3}, {1, 0, 4, 7},
		{0, 0, 1, 7}, // repeated: its first attempt has spent more
		{0, 0, 5, 9}, {0, 1, 2, 11}, {0, 2, 1, 12},
		{0, 1, 50, 12}, // late: the chunk is finished
		{1, 0, 4, 12},
	} {
		sum, err := b.Set(t.Context(), step.partition, step.chunk, sharedlimit.Spent{Calls: step.calls, Tokens: 10 * step.calls, Money: float64(step.calls)})
		testkit.Must(t, err)
		if want := (sharedlimit.Spent{Calls: step.want, Tokens: 10 * step.want, Money: float64(step.want)}); sum != want {
			t.Errorf("step %d: %+v, want %+v", i, sum, want)
		}
	}
}

// TestBudget_RemovesOld: those of runs that ended a month ago are removed.
func TestBudget_RemovesOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inprocess.New()
		for n := range 3 {
			_, err := sharedlimit.NewBudget(in(store), fmt.Sprint(n)).Set(t.Context(), 0, 0, sharedlimit.Spent{Calls: 1})
			testkit.Must(t, err)
			time.Sleep(20 * 24 * time.Hour)
		}
		left := 0
		for _, err := range in(store).Records(appstate.Budgets).List(t.Context(), memstore.RecordQuery{Expired: true}) {
			testkit.Must(t, err)
			left++
		}
		if left != 2 {
			t.Errorf("%d are left", left)
		}
	})
}

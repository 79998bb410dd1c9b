package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// errNoSharedStore is the error of a worker whose store no other process can have.
var errNoSharedStore = errors.New("the store of this worker is in its process: all workers need one store that they reach (--store)")

// newBudget returns that of a run that begins; nil if the flow has none.
func newBudget(f *spec.Flow) *budget {
	if f.Budget == nil {
		return nil
	}
	b := f.Budget
	return &budget{ID: rand.Text(), Began: time.Now(), Tokens: b.Tokens, Calls: b.Calls, Seconds: b.Seconds, Money: b.Money}
}

// renewed returns the budget of a run that continues: its limits, of which nothing is spent.
func (b *budget) renewed() *budget {
	if b == nil {
		return nil
	}
	again := *b
	again.ID, again.Began = rand.Text(), time.Now()
	return &again
}

// sharedBudget lets the chunk spend from the budget of the run. What earlier attempts have used
// for rows that are finished counts; other rows are run again, and their recorded calls are events.
func (c *chunkRun) sharedBudget(state store.Application) runtime.RunOption {
	finished := spentOf(c.before.Events)
	b := c.task.Budget
	sum := sharedlimit.NewBudget(state, b.ID)
	limits := spec.Budget{Tokens: b.Tokens, Calls: b.Calls, Seconds: b.Seconds, Money: b.Money}
	return runtime.WithSharedBudget(runtime.SharedBudget{Budget: limits, Began: b.Began, Sum: func(ctx context.Context, own runtime.Spent) (runtime.Spent, error) {
		if _, ok := state.Store.(*inprocess.Store); ok {
			return runtime.Spent{}, errNoSharedStore
		}
		own = runtime.Spent{Calls: finished.Calls + own.Calls, Tokens: finished.Tokens + own.Tokens, Money: finished.Money + own.Money}
		all, err := sum.Set(ctx, c.task.Partition, c.task.Number, sharedlimit.Spent(own))
		return runtime.Spent(all), err
	}})
}

// spentOf returns what the calls of events have used.
func spentOf(events []event) (s runtime.Spent) {
	for _, ev := range events {
		s = runtime.Spent{Calls: s.Calls + ev.Calls, Tokens: s.Tokens + ev.Input + ev.Output, Money: s.Money + ev.Cost}
	}
	return s
}

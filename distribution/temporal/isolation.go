package temporal

import (
	"context"
	"errors"
	"iter"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/qtype-dev/qtype/runtime"
)

// sharedAttempts is how often the rows of a chunk run together. If so many attempts have not ended, a row may end its
// workers: then each runs alone.
const sharedAttempts = 3

// errLethal is the error of a row that ends its worker.
var errLethal = errors.New("its worker ended each time that it ran, the last time while no other row of its chunk did")

// run runs rows together, or one after the other if the workers of earlier attempts have ended. Then a heartbeat names
// each row before it runs, and a row in which a worker has ended fails.
func (c *chunkRun) run(ctx context.Context, w *chunkRunner, rows iter.Seq[runtime.Input], opts []runtime.RunOption) iter.Seq2[*runtime.Result, error] {
	if c.ctx == nil || c.task.Tail != nil || activity.GetInfo(c.ctx).Attempt <= sharedAttempts {
		return w.app.Run(ctx, c.task.Flow, rows, opts...)
	}
	return func(yield func(*runtime.Result, error) bool) {
		number := 0
		for row := range rows {
			if number++; number == c.lethal {
				row.Err = errLethal
			}
			c.setAlone(number)
			_ = c.report(ctx, w.beat) // without it, the next attempt runs the row alone
			for res, err := range w.app.Run(ctx, c.task.Flow, slices.Values([]runtime.Input{row}), opts...) {
				if !yield(res, err) || err != nil {
					return
				}
			}
			c.setAlone(0)
		}
	}
}

func (c *chunkRun) setAlone(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone = number
}

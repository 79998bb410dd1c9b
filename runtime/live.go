package runtime

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// patient tells whether a group of rows of some step waits for more rows only
// so long: the flow then runs in parts, so that somebody can look at the clock
// while the steps before are at work.
func patient(stages []stage) bool {
	return slices.ContainsFunc(stages, func(s stage) bool { return s.nodes[0].wait > 0 })
}

// sections cuts a flow's stages in front of each step whose groups wait only so long.
func sections(stages []stage) [][]stage {
	var all [][]stage
	start := 0
	for i, s := range stages {
		if s.nodes[0].wait > 0 && i > start {
			all = append(all, stages[start:i])
			start = i
		}
	}
	return append(all, stages[start:])
}

// live runs a flow of several sections: each on a goroutine of its own, the last
// one on the caller's. Between two of them is room for one row.
func (r *run) live(ctx context.Context, rows iter.Seq[Input], out sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	all := sections(r.flow.stages)
	if all[0][0].nodes[0].wait > 0 {
		all = append([][]stage{nil}, all...) // the input is read while the first group waits
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	var in chan *steps.Row
	for i, stages := range all[:len(all)-1] {
		from, to := in, make(chan *steps.Row, 1)
		group.Go(func() {
			defer close(to)
			first := chain(ctx, stages, handover(to))
			defer first.stop()
			var err error
			if i == 0 {
				err = r.feed(ctx, rows, first)
			} else {
				err = follow(ctx, from, first)
			}
			if err != nil {
				cancel(err)
			}
		})
		in = to
	}
	first := chain(ctx, all[len(all)-1], out)
	defer first.stop()
	defer cancel(nil)
	return follow(ctx, in, first)
}

// handover is the end of a section: it hands rows to the next one.
type handover chan *steps.Row

func (h handover) push(ctx context.Context, row *steps.Row) error {
	select {
	case h <- row:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h handover) finish(context.Context) error { return nil }

func (h handover) stop() {}

// follow takes rows from the part before, and sends the group in front on when
// its first row has waited long enough.
func follow(ctx context.Context, in <-chan *steps.Row, first sink) error {
	gather := first.(*batchSink) // sections are cut in front of those
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if len(gather.rows) > 0 {
			timer.Reset(time.Until(gather.since.Add(gather.node.wait)))
			due = timer.C
		}
		select {
		case row, more := <-in:
			switch {
			case more:
				if err := first.push(ctx, row); err != nil {
					return err
				}
			case ctx.Err() != nil:
				return context.Cause(ctx)
			default:
				return first.finish(ctx)
			}
		case <-due:
			if err := gather.flush(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

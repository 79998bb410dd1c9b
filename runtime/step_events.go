package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

// wantsStepEvents reports whether the starts and ends of steps are reported.
func wantsStepEvents(ctx context.Context) bool {
	return steps.Wanted(ctx, steps.EventStepStart) || steps.Wanted(ctx, steps.EventStepEnd)
}

// reportStep reports that a step begins to process a row, and returns a function that
// reports the end, with the error of the step, when it is first called.
func reportStep(ctx context.Context, id string, row *steps.Row) func(error) {
	ev := steps.Event{Kind: steps.EventStepStart, Step: id, Session: row.Session, Row: row.Number}
	steps.Report(ctx, ev)
	ended := false
	return func(err error) {
		if ended {
			return
		}
		ended = true
		ev.Kind, ev.Err = steps.EventStepEnd, err
		steps.Report(ctx, ev)
	}
}

// reportBatch reports that a batch step begins to process rows, and returns a function
// that reports the end for each of them, with the error of the batch. failed notes the
// error of a single row.
func reportBatch(ctx context.Context, id string, rows []*steps.Row) (failed func(*steps.Row), end func(error)) {
	ends := make([]func(error), len(rows))
	numbers := make([]int64, len(rows)) // rows must not be read after they were emitted
	for i, row := range rows {
		ends[i], numbers[i] = reportStep(ctx, id, row), row.Number
	}
	errs := map[int64]error{}
	failed = func(r *steps.Row) { errs[r.Number] = r.Err }
	return failed, func(err error) {
		for i, end := range ends {
			if own := errs[numbers[i]]; own != nil {
				end(own)
				continue
			}
			end(err)
		}
	}
}

// failureOf returns why a row that the step emits failed in it, nil if it did not.
func (n *node) failureOf(r *steps.Row) error {
	if r.Err != nil && r.Err.Step == n.id {
		return r.Err
	}
	return nil
}

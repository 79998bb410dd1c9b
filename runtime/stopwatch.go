package runtime

import (
	"math/rand/v2"
	"time"
)

const (
	// sampledBelow is the time of a row from which on its steps are measured for each
	// row. Reading the clock costs steps that only compute more than their work.
	sampledBelow = 100 * time.Microsecond
	// sampledRows is how many faster rows there are for one that is measured, on average.
	sampledRows = 16
)

// stopwatch measures the time of the steps that one goroutine runs. The time of a step
// does not include the time of later steps with the rows that it emits.
//
// Of rows that take less than sampledBelow it measures about one of sampledRows, if the
// steps wait for nothing. The distances are random, so that they match no pattern of the
// rows, and the time of a measured row counts for the rows since the one before.
type stopwatch struct {
	samples bool     // fast rows are sampled
	weight  int64    // how many rows the time of the row counts for; 0 if it is not measured
	gap     int64    // the distance to the next measured row
	passed  int64    // rows since the last measured one, the current one included
	of      *counter // the step that runs; nil if none does
	since   time.Time
	spent   time.Duration // the time of the row so far
}

// newStopwatch returns a stopwatch for steps; nil if their times are not measured.
func newStopwatch(nodes []*node) *stopwatch {
	if len(nodes) == 0 || !nodes[0].timed {
		return nil
	}
	w := &stopwatch{samples: true, gap: 1}
	for _, n := range nodes {
		w.samples = w.samples && !n.cached && n.plan.IsQuick()
	}
	return w
}

// begin begins a row, or a batch of rows.
func (w *stopwatch) begin() {
	if w == nil {
		return
	}
	w.weight = 0
	if w.passed++; w.passed >= w.gap {
		w.weight, w.passed, w.spent = w.passed, 0, 0
	}
}

// end ends the row.
func (w *stopwatch) end() {
	if w == nil || w.weight == 0 {
		return
	}
	w.weight, w.gap = 0, 1
	if w.samples && w.spent < sampledBelow {
		w.gap += rand.Int64N(2*sampledRows - 1)
	}
}

// switchTo stops the clock of the current step, starts the clock of another one, and
// returns the former; nil for none.
func (w *stopwatch) switchTo(next *counter) (from *counter) {
	if w == nil || w.weight == 0 {
		return nil
	}
	now := time.Now()
	if w.of != nil {
		took := now.Sub(w.since)
		w.spent += took
		w.of.time.Add(int64(took) * w.weight)
	}
	from, w.of, w.since = w.of, next, now
	return from
}

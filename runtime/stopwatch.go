package runtime

import "time"

// stopwatch measures the time of the steps that one goroutine runs. The time of a
// step does not include that of later steps with the rows that it emits.
type stopwatch struct {
	of    *counter // the step that runs; nil if none does
	since time.Time
}

// switchTo stops the current step's clock, starts that of another step, and returns a
// function that switches back.
func (w *stopwatch) switchTo(to *counter) (back func()) {
	from := w.of
	w.charge(to)
	return func() { w.charge(from) }
}

func (w *stopwatch) charge(next *counter) {
	now := time.Now()
	if w.of != nil {
		w.of.time.Add(int64(now.Sub(w.since)))
	}
	w.of, w.since = next, now
}

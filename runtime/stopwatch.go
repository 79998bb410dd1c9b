package runtime

import "time"

// stopwatch charges time to the steps that one goroutine works in. A step that
// emits a row is not charged for what the steps behind make of it.
type stopwatch struct {
	of    *counter // the step that is at work; nil while none is
	since time.Time
}

// switchTo charges the time so far and lets another step's begin; what it answers
// turns back.
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

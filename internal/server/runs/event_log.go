package runs

// blockEvents is the number of events that are allocated at once. A run that waits for
// its model has one block; the events of a long answer are never copied.
const blockEvents = 8

// eventLog has the events of a run in the order in which they happened. Those that it has
// returned stay as they are. It is not safe for concurrent use.
type eventLog struct {
	blocks [][]Event // all full, except the last one
	n      int
}

// add appends an event.
func (l *eventLog) add(ev Event) {
	if l.n%blockEvents == 0 {
		l.blocks = append(l.blocks, make([]Event, 0, blockEvents))
	}
	last := &l.blocks[len(l.blocks)-1]
	*last = append(*last, ev)
	l.n++
}

// after returns events after the first n: at least one if there are any.
func (l *eventLog) after(n int) []Event {
	if n >= l.n {
		return nil
	}
	block := l.blocks[n/blockEvents]
	return block[n%blockEvents : len(block) : len(block)]
}

// first returns the first n events.
func (l *eventLog) first(n int) []Event {
	out := make([]Event, 0, min(n, l.n))
	for len(out) < cap(out) {
		next := l.after(len(out))
		out = append(out, next[:min(len(next), cap(out)-len(out))]...)
	}
	return out
}

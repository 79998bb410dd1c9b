package runs

import (
	"slices"
	"testing"
)

func TestEventLog(t *testing.T) {
	const total = 3*blockEvents + 5
	var l eventLog
	for row := range int64(total) {
		if got := l.after(l.n); got != nil {
			t.Fatalf("after %d of %d events: %v", l.n, l.n, got)
		}
		l.add(Event{Row: row})
	}
	for n := range total {
		var rows []int64
		for at := n; at < total; {
			events := l.after(at)
			if len(events) == 0 {
				t.Fatalf("no event after %d of %d", at, total)
			}
			for _, ev := range events {
				rows = append(rows, ev.Row)
			}
			at += len(events)
		}
		if len(rows) != total-n || rows[0] != int64(n) || !slices.IsSorted(rows) {
			t.Errorf("after %d: rows %v", n, rows)
		}
		if first := l.first(n); len(first) != n || n > 0 && first[n-1].Row != int64(n-1) {
			t.Errorf("first(%d) has %d events", n, len(first))
		}
	}
	if got := len(l.first(total + 1)); got != total {
		t.Errorf("first(%d) has %d events", total+1, got)
	}
}

func TestEventLogKeepsWhatItReturned(t *testing.T) {
	var l eventLog
	l.add(Event{Row: 1})
	events := l.after(0)
	l.add(Event{Row: 2})
	if len(append(events, Event{Row: 3})) != 2 || l.after(1)[0].Row != 2 {
		t.Errorf("the log shares its memory: %v", l.after(0))
	}
}

// BenchmarkEventLog measures the events of a run whose answer has 50 deltas: they are
// added, and read one by one.
func BenchmarkEventLog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r := Run{requests: newRequests(), state: State{Status: Running}}
		for n := range 57 {
			r.add(Event{Type: TextDelta, Step: "reply", Row: 1, Text: "twenty-four-characters. "}, nil)
			if events, err := r.Next(b.Context(), n); err != nil || len(events) != 1 {
				b.Fatal(events, err)
			}
		}
	}
}

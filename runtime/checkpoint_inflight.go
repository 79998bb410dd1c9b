package runtime

import (
	"math"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// rowObserver is told what rows become on a leg, one row after the other.
type rowObserver interface {
	begin(place int64)        // of the row whose results come now
	add(row *steps.Row) error // a result, before it goes on
	end() error               // there are no more: the row is finished
}

// maxBufferedResults is how many results of one row are told of at once.
const maxBufferedResults = 1024

// resultObserver tells Finished of the results of rows.
type resultObserver struct {
	run    *run
	number int64
	rows   []*steps.Row
}

func (r *resultObserver) begin(place int64) { r.number, r.rows = place, r.rows[:0] }

func (r *resultObserver) add(row *steps.Row) error {
	if len(r.rows) >= maxBufferedResults {
		if err := r.notify(false); err != nil {
			return err
		}
		r.rows = r.rows[:0]
	}
	r.rows = append(r.rows, row)
	return nil
}

func (r *resultObserver) end() error { return r.notify(true) }

// notify hands the rows to who wants to know.
func (r *resultObserver) notify(last bool) error {
	results := make([]*Result, len(r.rows))
	for i, row := range r.rows {
		results[i] = r.run.flow.result(row, r.run.outputs)
	}
	return r.run.finished(r.number, results, last)
}

// checkpointObserver hands the results of rows to a Keeper.
type checkpointObserver struct {
	of    *segmentCheckpoint
	mark  CheckpointKey
	known bool // the row has a mark
	rows  rowEncoder
	made  []CheckpointRow
	text  []byte
}

func (r *checkpointObserver) begin(place int64) {
	r.mark, r.known = r.of.pendingKey(place)
	r.made, r.text = r.made[:0], r.text[:0]
	r.rows.reset()
}

func (r *checkpointObserver) add(row *steps.Row) error {
	if !r.known {
		return nil
	}
	if len(r.made) >= maxBufferedResults {
		if err := r.of.keeper.Keep(r.mark, r.made, false); err != nil {
			return err
		}
		r.made, r.text = r.made[:0], r.text[:0]
	}
	start := len(r.text)
	r.text = r.rows.row(r.text, row)
	r.made = append(r.made, CheckpointRow{Data: r.text[start:], Err: row.Err})
	return nil
}

func (r *checkpointObserver) end() error {
	if !r.known {
		return nil
	}
	return r.of.keeper.Keep(r.mark, r.made, true)
}

// inflightRows gathers the results of rows at the end of a leg, and finishes each row
// once nothing that is still on the leg can come of it. It is the pushing goroutine's.
type inflightRows struct {
	record func() rowObserver
	open   []inflightRow // rows that were pushed and are not finished, in order
	spare  []rowObserver
}

// inflightRow is a row that is on its way.
type inflightRow struct {
	place  int64
	record rowObserver
}

// begin takes note of a row that is about to be pushed.
func (l *inflightRows) begin(place int64) {
	if len(l.spare) == 0 {
		l.spare = append(l.spare, l.record())
	}
	r := l.spare[len(l.spare)-1]
	l.spare = l.spare[:len(l.spare)-1]
	r.begin(place)
	l.open = append(l.open, inflightRow{place, r})
}

// keep takes a result.
func (l *inflightRows) keep(row *steps.Row) error {
	i, found := slices.BinarySearchFunc(l.open, row.Place, func(o inflightRow, place int64) int {
		switch {
		case o.place < place:
			return -1
		case o.place > place:
			return 1
		}
		return 0
	})
	if !found { // it was known before
		return nil
	}
	return l.open[i].record.add(row)
}

// finishBefore finishes the rows before low, which is the first that the leg still holds.
func (l *inflightRows) finishBefore(low int64) error {
	n := 0
	for ; n < len(l.open) && l.open[n].place < low; n++ {
		if err := l.open[n].record.end(); err != nil {
			return err
		}
		l.spare = append(l.spare, l.open[n].record)
	}
	l.open = append(l.open[:0], l.open[n:]...)
	return nil
}

// buffering is a sink that may hold rows when push has returned.
type buffering interface {
	// oldestBuffered is the place of the first row of which something is held here or
	// behind, up to the end of the leg; none where nothing is.
	oldestBuffered() int64
}

// none is more than any row's place.
const none = math.MaxInt64

// oldestPending is the first row of which a chain holds something.
func oldestPending(s sink) int64 {
	if h, ok := s.(buffering); ok {
		return h.oldestBuffered()
	}
	return none
}

func (s *serialSink) oldestBuffered() int64 { return oldestPending(s.next) }

func (p *parallelSink) oldestBuffered() int64 {
	low := oldestPending(p.next)
	if len(p.queue) > 0 {
		low = min(low, p.queue[0].place)
	}
	return low
}

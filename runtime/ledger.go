package runtime

import (
	"math"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// recorder is told what rows become on a leg, one row after the other.
type recorder interface {
	begin(place int64)        // of the row whose results come now
	add(row *steps.Row) error // a result, before it goes on
	end() error               // there are no more: the row is finished
}

// heldResults is how many results of one row are told of at once.
const heldResults = 1024

// resultRecorder tells Finished of the results of rows.
type resultRecorder struct {
	run    *run
	number int64
	rows   []*steps.Row
}

func (r *resultRecorder) begin(place int64) { r.number, r.rows = place, r.rows[:0] }

func (r *resultRecorder) add(row *steps.Row) error {
	if len(r.rows) >= heldResults {
		if err := r.tell(false); err != nil {
			return err
		}
		r.rows = r.rows[:0]
	}
	r.rows = append(r.rows, row)
	return nil
}

func (r *resultRecorder) end() error { return r.tell(true) }

// tell hands the rows to who wants to know.
func (r *resultRecorder) tell(last bool) error {
	results := make([]*Result, len(r.rows))
	for i, row := range r.rows {
		results[i] = r.run.flow.result(row, r.run.outputs)
	}
	return r.run.finished(r.number, results, last)
}

// keepRecorder hands the results of rows to a Keeper.
type keepRecorder struct {
	of    *legKeeper
	mark  Mark
	known bool // the row has a mark
	rows  rowEncoder
	made  []Kept
	text  []byte
}

func (r *keepRecorder) begin(place int64) {
	r.mark, r.known = r.of.taken(place)
	r.made, r.text = r.made[:0], r.text[:0]
	r.rows.reset()
}

func (r *keepRecorder) add(row *steps.Row) error {
	if !r.known {
		return nil
	}
	if len(r.made) >= heldResults {
		if err := r.of.keeper.Keep(r.mark, r.made, false); err != nil {
			return err
		}
		r.made, r.text = r.made[:0], r.text[:0]
	}
	start := len(r.text)
	r.text = r.rows.row(r.text, row)
	r.made = append(r.made, Kept{Data: r.text[start:], Err: row.Err})
	return nil
}

func (r *keepRecorder) end() error {
	if !r.known {
		return nil
	}
	return r.of.keeper.Keep(r.mark, r.made, true)
}

// ledger gathers the results of rows at the end of a leg, and finishes each row
// once nothing that is still on the leg can come of it. It is the pushing goroutine's.
type ledger struct {
	record func() recorder
	open   []openRow // rows that were pushed and are not finished, in order
	spare  []recorder
}

// openRow is a row that is on its way.
type openRow struct {
	place  int64
	record recorder
}

// begin takes note of a row that is about to be pushed.
func (l *ledger) begin(place int64) {
	if len(l.spare) == 0 {
		l.spare = append(l.spare, l.record())
	}
	r := l.spare[len(l.spare)-1]
	l.spare = l.spare[:len(l.spare)-1]
	r.begin(place)
	l.open = append(l.open, openRow{place, r})
}

// keep takes a result.
func (l *ledger) keep(row *steps.Row) error {
	i, found := slices.BinarySearchFunc(l.open, row.Place, func(o openRow, place int64) int {
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

// settle finishes the rows before low, which is the first that the leg still holds.
func (l *ledger) settle(low int64) error {
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

// holder is a sink that may hold rows when push has returned.
type holder interface {
	// holding is the place of the first row of which something is held here or
	// behind, up to the end of the leg; none where nothing is.
	holding() int64
}

// none is more than any row's place.
const none = math.MaxInt64

// lowest is the first row of which a chain holds something.
func lowest(s sink) int64 {
	if h, ok := s.(holder); ok {
		return h.holding()
	}
	return none
}

func (s *serialSink) holding() int64 { return lowest(s.next) }

func (p *parallelSink) holding() int64 {
	low := lowest(p.next)
	if len(p.queue) > 0 {
		low = min(low, p.queue[0].place)
	}
	return low
}

package runtime

import (
	"fmt"
	"math"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Finished is told what became of an input row: its number, its results in
// their order, and whether they are all, so that the row is finished. Its error
// ends the run.
type Finished func(number int64, results []*Result, last bool) error

// WithFinished tells f of every input row as soon as all that became of it is
// known: with workers that can be long before its results come out of Run,
// which keeps the order of the rows. f may be called by several goroutines at
// once and must not keep the results. A row that was cancelled is never
// finished. A flow of which Resumable says no cannot be run with it.
func WithFinished(f Finished) RunOption { return func(r *run) { r.finished = f } }

// WithName names a run that is resumed under the same name after an interruption: a
// turn of a memory that was kept before is not held again when its row is done
// again, and its answer is given back. Two runs must not have one name; an empty
// name is none.
func WithName(name string) RunOption { return func(r *run) { r.name = name } }

// NotResumableError says why it cannot be told of a flow which rows are finished.
type NotResumableError struct {
	Flow string // the flow's id
	Step string // the step that makes it so
}

// Error names the step.
func (e *NotResumableError) Error() string {
	return fmt.Sprintf("step %s of flow %s works on groups of rows: what comes out belongs to no single row", e.Step, e.Flow)
}

// Resumable tells whether it can be known of each row of the flow when it is
// finished; else it is a *NotResumableError that names a step that gathers rows.
func (a *App) Resumable(f *spec.Flow) error {
	c, err := a.compile(f)
	if err != nil {
		return err
	}
	return c.resumable()
}

func (f *flow) resumable() error {
	for _, n := range f.nodes {
		if n.batch != nil {
			return &NotResumableError{Flow: f.spec.ID, Step: n.id}
		}
	}
	return nil
}

// heldResults is how many results of one row are told of at once.
const heldResults = 1024

// tell hands rows that one input row became to who wants to know.
func (r *run) tell(number int64, rows []*steps.Row, last bool) error {
	results := make([]*Result, len(rows))
	for i, row := range rows {
		results[i] = r.flow.result(row, r.outputs)
	}
	return r.finished(number, results, last)
}

// watchEnd finds the place where rows are known to be finished: the worker that
// is done with one where the whole flow is one stage with workers, else the end
// of the chain.
func (r *run) watchEnd(first sink, out *resultSink) {
	if r.finished == nil {
		return
	}
	if p, ok := first.(*parallelSink); ok && p.next == sink(out) {
		p.finished = r.tell
		return
	}
	r.ledger = &ledger{run: r}
	out.ledger = r.ledger
}

// ledger gathers the results of rows at the end of the chain, and tells of each
// row once nothing that is still in the chain can come of it.
type ledger struct {
	run  *run
	open []int64 // rows that were pushed and are not finished, in order
	rows []*steps.Row
}

// keep takes a result.
func (l *ledger) keep(row *steps.Row) error {
	if n := len(l.rows); n >= heldResults && l.rows[0].Number == row.Number && l.rows[n-1].Number == row.Number {
		if err := l.run.tell(row.Number, l.rows, false); err != nil {
			return err
		}
		l.rows = l.rows[:0]
	}
	l.rows = append(l.rows, row)
	return nil
}

// settle tells of the rows before low, which is the first that the chain still holds.
func (l *ledger) settle(low int64) error {
	for len(l.open) > 0 && l.open[0] < low {
		number := l.open[0]
		n := 0
		for n < len(l.rows) && l.rows[n].Number == number {
			n++
		}
		if err := l.run.tell(number, l.rows[:n], true); err != nil {
			return err
		}
		l.rows = append(l.rows[:0], l.rows[n:]...)
		l.open = append(l.open[:0], l.open[1:]...)
	}
	return nil
}

// holder is a sink that may hold rows when push has returned.
type holder interface {
	// holding is the number of the first input row of which something is held
	// here or behind; none where nothing is.
	holding() int64
}

// none is more than any row's number.
const none = math.MaxInt64

// lowest is the first input row of which a chain holds something.
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
		low = min(low, p.queue[0].number)
	}
	return low
}

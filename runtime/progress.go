package runtime

import (
	"sync/atomic"
	"time"
)

// counter counts a step's rows while they pass.
type counter struct {
	in, done, failed atomic.Int64
	time             atomic.Int64 // nanoseconds of work, of all workers together
	hits, misses     atomic.Int64 // rows whose results the step's cache had, and had not
}

// StepProgress is how far a step has come.
type StepProgress struct {
	Step   string // the step's id
	In     int64  // rows that it has taken
	Done   int64  // rows that it has passed on
	Failed int64  // rows that failed in it

	// Hits and Misses count the rows whose results the step's cache had, and had
	// not; both are 0 for a step without one.
	Hits, Misses int64

	// Time is how long the step has worked, its workers' times added up; 0
	// unless the run was given WithStepTimes.
	Time time.Duration
}

// Progress watches one run. Its methods may be called at any time from any goroutine.
type Progress struct {
	nodes atomic.Pointer[[]*node]
	rows  atomic.Int64
	done  atomic.Int64
	fails atomic.Int64
}

// Rows is how many input rows were read, and how many result rows have come
// out, failed ones included and also apart.
func (p *Progress) Rows() (read, done, failed int64) {
	return p.rows.Load(), p.done.Load(), p.fails.Load()
}

// Steps is how far each step has come, in the order of the flow; empty before the run.
func (p *Progress) Steps() []StepProgress {
	nodes := p.nodes.Load()
	if nodes == nil {
		return nil
	}
	all := make([]StepProgress, len(*nodes))
	for i, n := range *nodes {
		all[i] = StepProgress{Step: n.id, In: n.count.in.Load(), Done: n.count.done.Load(), Failed: n.count.failed.Load(),
			Hits: n.count.hits.Load(), Misses: n.count.misses.Load(), Time: time.Duration(n.count.time.Load())}
	}
	return all
}

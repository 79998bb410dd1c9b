package runtime

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// StepProgress is the progress of a step.
type StepProgress struct {
	Step   string // the step's id
	In     int64  // rows that it has received
	Done   int64  // rows that it has emitted
	Failed int64  // rows that failed in it

	// Hits and Misses count the rows whose results were cached, and were not; both
	// are 0 for a step without a cache.
	Hits, Misses int64

	// Time is how long the step has worked, summed over its workers; 0 without
	// WithStepTimes.
	Time time.Duration

	// Index is what the step did to an index; nil if it writes to none.
	Index *steps.IndexCounts
}

// Progress is the progress of one run. Its methods are safe for concurrent use.
type Progress struct {
	nodes atomic.Pointer[[]*node]
	rows  atomic.Int64
	done  atomic.Int64
	fails atomic.Int64
	steps atomic.Pointer[[]StepProgress] // of a run in other processes; see Set
}

// Set replaces the progress by that of a run in other processes.
func (p *Progress) Set(read, done, failed int64, all []StepProgress) {
	p.rows.Store(read)
	p.done.Store(done)
	p.fails.Store(failed)
	p.steps.Store(&all)
}

// Rows returns the numbers of input rows, of results, and of failed results so far. It
// does not count rows that were replayed from checkpoints.
func (p *Progress) Rows() (read, done, failed int64) {
	return p.rows.Load(), p.done.Load(), p.fails.Load()
}

// HasFailures reports whether a row has failed in a step, also in a flow that a step runs, or if the step dropped it.
func (p *Progress) HasFailures() bool {
	nodes := p.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(n *node) bool { return n.failures != nil && n.failures.Load() > 0 })
}

// Steps returns the progress of each step in the order of the flow; nil before the run.
func (p *Progress) Steps() []StepProgress {
	if elsewhere := p.steps.Load(); elsewhere != nil {
		return slices.Clone(*elsewhere)
	}
	nodes := p.nodes.Load()
	if nodes == nil {
		return nil
	}
	all := make([]StepProgress, len(*nodes))
	for i, n := range *nodes {
		all[i] = StepProgress{Step: n.id, In: n.count.in.Load(), Done: n.count.done.Load(), Failed: n.count.failed.Load(),
			Hits: n.count.hits.Load(), Misses: n.count.misses.Load(), Time: time.Duration(n.count.time.Load())}
		if n.index != nil {
			counts := n.index.Counts()
			all[i].Index = &counts
		}
	}
	return all
}

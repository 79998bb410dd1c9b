package runtime

import "sync/atomic"

// counter counts a step's rows while they pass.
type counter struct{ in, done, failed atomic.Int64 }

// StepProgress is how far a step has come.
type StepProgress struct {
	Step   string // the step's id
	In     int64  // rows that it has taken
	Done   int64  // rows that it has passed on
	Failed int64  // rows that failed in it
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
		all[i] = StepProgress{Step: n.id, In: n.count.in.Load(), Done: n.count.done.Load(), Failed: n.count.failed.Load()}
	}
	return all
}

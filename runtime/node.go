package runtime

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// node is one step of a compiled flow.
type node struct {
	id       string
	plan     *spec.StepPlan
	step     steps.Step            // set for a step that processes single rows
	batch    steps.Batch           // set for a step that processes batches of rows
	closer   steps.Closer          // set if the step emits rows at the end
	observer steps.FailureObserver // set if the step observes failed rows
	grouper  steps.RowGrouper      // nil if only the size ends a batch
	limit    int                   // the maximum number of rows at once; 0 if the step has none
	permits  chan struct{}         // has limit tokens if the stage has more workers than that
	onError  errorPolicy           // what to do with rows that the step failed on
	outputs  []int                 // the slots that the step writes
	computes bool                  // the step reaches nothing but the values of the row
	cached   bool                  // a cache is in front of the step
	maxWait  time.Duration         // how long a batch waits for more rows; 0 for no limit
	timed    bool                  // the time of the step is measured
	index    *steps.IndexCounter   // nil if the step writes to no index
	count    *counter
	pass     *waves.Pass      // of a run that makes calls in batches; nil for others
	sessions bool             // a row that is suspended here blocks the later rows of its session
	scope    memory.Scope     // of these sessions
	redactor *redact.Redactor // of errors; nil in tests
	failures *atomic.Int64    // counts the failed rows of the whole run, in addition to count; nil in tests
}

// countFailure counts a row that failed in the step.
func (n *node) countFailure() {
	n.count.failed.Add(1)
	if n.failures != nil {
		n.failures.Add(1)
	}
}

// counter counts the rows of a step.
type counter struct {
	in, done, failed atomic.Int64
	time             atomic.Int64 // nanoseconds of work, of all workers together
	hits, misses     atomic.Int64 // rows whose results were cached, and were not
}

// errorPolicy is what to do with a row that a step failed on. Others than these
// keep the error in the row.
type errorPolicy string

const (
	onErrorSkip     errorPolicy = "skip"     // drop the row
	onErrorContinue errorPolicy = "continue" // continue without the step's outputs
)

// newNode wraps a step that was built.
func newNode(p *spec.StepPlan, r steps.Runner, l *layout) (*node, error) {
	base := p.Step.Common()
	n := &node{id: base.ID, plan: p, computes: p.OnlyComputes(), count: &counter{}, onError: errorPolicy(base.OnError)}
	for _, ref := range base.AllOutputs() {
		n.outputs = append(n.outputs, l.Slot(ref.To))
	}
	policy := retryPolicyOf(base)
	switch r := r.(type) {
	case steps.Batch:
		n.batch = r
		if policy != nil {
			n.batch = &retryBatch{retryPolicy: policy, id: n.id, batch: r}
		}
	case steps.Step:
		n.step = r
		if policy != nil {
			n.step = &retryStep{retryPolicy: policy, id: n.id, step: r}
		}
	default:
		return nil, fmt.Errorf("step %s: it processes neither rows nor batches", n.id)
	}
	n.closer, _ = r.(steps.Closer)
	n.observer, _ = r.(steps.FailureObserver)
	n.grouper, _ = r.(steps.RowGrouper)
	if w, ok := r.(steps.IndexWriter); ok {
		n.index = w.Counts()
	}
	if c, ok := p.Step.(interface{ Workers() int }); ok {
		n.limit = c.Workers()
	}
	if b, ok := p.Step.(interface{ Wait() time.Duration }); ok && n.batch != nil {
		n.maxWait = b.Wait()
	}
	return n, nil
}

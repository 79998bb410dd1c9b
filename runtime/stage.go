package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// stage is a sequence of steps that one goroutine takes a row through before it
// takes the next one: there is no channel between them.
type stage struct {
	nodes    []*node
	workers  int          // rows at once
	sessions bool         // the rows of a session are processed one after the other, in order
	scope    memory.Scope // those of a session, of a user, or all
	isBatch  bool         // it is one batch step: its results belong to no single row
	segment  int          // the number of batch steps up to here, itself included
}

// newStages groups the steps of a flow into stages.
//
// A batch step is a stage, and so is Aggregate, unless it is between steps of one
// conversation. Other steps are joined as far as possible. A new stage begins
// before a step with workers if the stage so far makes many rows of one, because
// workers take whole input rows. From the first to the last step that uses a
// memory, rows of a session keep their order through all steps, so that a
// conversation does not depend on the number of workers: these steps always stay
// in one stage.
func newStages(nodes []*node) []stage {
	first, last := memorySpan(nodes)
	var stages []stage
	var open *stage
	makesMany, segment := false, 0
	for i, n := range nodes {
		inSpan := i > first && i <= last && first >= 0
		switch {
		case n.batch != nil, n.closer != nil && !inSpan:
			segment++
			stages = append(stages, stage{nodes: []*node{n}, workers: 1, isBatch: true, segment: segment})
			open = nil
			continue
		case open == nil, makesMany && !inSpan && n.limit > 1, i == first && makesMany && maxLimit(nodes[first:last+1]) > 1:
			stages = append(stages, stage{workers: 1, segment: segment})
			open, makesMany = &stages[len(stages)-1], false
		}
		open.nodes = append(open.nodes, n)
		open.workers = max(open.workers, n.limit)
		if i >= first && i <= last && first >= 0 {
			open.sessions = true
			open.scope = memory.Scope(spec.Scope(open.scope).Widest(n.plan.MemoryScope()))
		}
		makesMany = makesMany || n.plan.Rows == spec.RowsMany
	}
	for _, s := range stages {
		_, lastTurn := memorySpan(s.nodes)
		for i, n := range s.nodes {
			n.sessions, n.scope = s.sessions && i <= lastTurn, s.scope
			if n.limit > 0 && n.limit < s.workers {
				n.permits = make(chan struct{}, n.limit)
			}
		}
	}
	return stages
}

// memorySpan returns the indexes of the first and the last step that uses a
// memory; -1, -1 if none does.
func memorySpan(nodes []*node) (first, last int) {
	first, last = -1, -1
	for i, n := range nodes {
		if n.plan.UsesMemory() {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// maxLimit returns the largest number of rows at once of some steps.
func maxLimit(nodes []*node) int {
	limit := 1
	for _, n := range nodes {
		limit = max(limit, n.limit)
	}
	return limit
}

func isBatch(s stage) bool { return s.isBatch }

// headOf returns the stages before the first batch step. If later stages use a memory of theirs there are
// none: turns after the step are between turns of later rows.
func headOf(stages []stage) []stage {
	first := slices.IndexFunc(stages, isBatch)
	if first < 0 {
		return stages
	}
	before := memoriesOf(stages[:first])
	for m := range memoriesOf(stages[first:]) {
		if before[m] {
			return nil
		}
	}
	return stages[:first]
}

// memoriesOf returns the memories that stages use, also in the flows that they run.
func memoriesOf(stages []stage) map[*spec.Memory]bool {
	used := map[*spec.Memory]bool{}
	for _, s := range stages {
		for _, n := range s.nodes {
			for p := range n.plan.All() {
				for _, m := range p.Memories() {
					used[m] = true
				}
			}
		}
	}
	return used
}

// layout gives each variable of a flow a slot in its rows. A variable is
// identified by its declaration, not by its name.
type layout struct {
	slots map[*spec.Variable]int
	vars  []*spec.Variable
}

var _ steps.Slots = (*layout)(nil)

// newLayout lays out the variables of a flow in the order in which they appear in
// the document.
func newLayout(f *spec.Flow) *layout {
	l := &layout{slots: map[*spec.Variable]int{}}
	for _, v := range f.Variables {
		l.add(v)
	}
	for _, refs := range [][]spec.Ref[*spec.Variable]{f.Inputs, f.Outputs} {
		for _, r := range refs {
			l.add(r.To)
		}
	}
	for _, s := range f.Plan().Steps {
		for _, refs := range [][]*spec.Ref[*spec.Variable]{s.Reads, s.Writes} {
			for _, r := range refs {
				l.add(r.To)
			}
		}
	}
	return l
}

func (l *layout) add(v *spec.Variable) {
	if _, ok := l.slots[v]; !ok && v != nil {
		l.slots[v] = len(l.vars)
		l.vars = append(l.vars, v)
	}
}

// Slot returns the index of v in a row's values, -1 if rows do not have v.
func (l *layout) Slot(v *spec.Variable) int {
	if i, ok := l.slots[v]; ok {
		return i
	}
	return -1
}

// Len returns the number of slots of a row.
func (l *layout) Len() int { return len(l.vars) }

// Variables lists the variables by their slots.
func (l *layout) Variables() []*spec.Variable { return l.vars }

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
	active   chan struct{}         // has limit tokens if more rows than that wait for batches of providers
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

// wait lets more rows than the step declares be in it if they wait for batches of providers.
func (n *node) wait(rows int) {
	callsModels := false
	for p := range n.plan.All() {
		callsModels = callsModels || len(p.Models()) > 0
	}
	if callsModels && n.batch == nil && rows > max(n.limit, 1) {
		n.active = make(chan struct{}, max(n.limit, 1))
		n.limit = rows
	}
}

// flow is a flow that was compiled for one run: batch steps have state.
type flow struct {
	spec   *spec.Flow
	layout *layout
	nodes  []*node
	stages []stage
}

// newRow returns a row whose values are unset.
func (f *flow) newRow(session string, number int64) *steps.Row {
	row := &steps.Row{Values: make([]any, f.layout.Len()), Session: session, Number: number}
	for i := range row.Values {
		row.Values[i] = value.Unset
	}
	return row
}

// outputSlot is an output of a flow and its slot in the flow's rows.
type outputSlot struct {
	variable *spec.Variable
	slot     int
}

// outputs returns the variables that the flow returns, with their slots.
func (f *flow) outputs() []outputSlot {
	all := make([]outputSlot, len(f.spec.Outputs))
	for i, ref := range f.spec.Outputs {
		all[i] = outputSlot{ref.To, f.layout.Slot(ref.To)}
	}
	return all
}

// errStopped is returned by emit when no more rows are needed.
var errStopped = errors.New("no more rows are wanted")

// sink receives rows. A flow is a chain of sinks. The caller's goroutine pushes a row
// into the first one and its results through all others, so a flow without workers
// runs on one goroutine and has one row at a time.
type sink interface {
	// push processes a row. Its error ends the run.
	push(ctx context.Context, row *steps.Row) error
	// finish is called once after the last row.
	finish(ctx context.Context) error
	// stop stops background work and waits for its end. It is called also after
	// finish.
	stop()
}

// linked is a sink that passes rows to another one.
type linked interface{ downstream() sink }

// downstream returns the sink after a sink, nil at the end of a chain.
func downstream(s sink) sink {
	if l, ok := s.(linked); ok {
		return l.downstream()
	}
	return nil
}

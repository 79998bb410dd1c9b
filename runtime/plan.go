package runtime

import (
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// layout gives each variable of a flow a slot in its rows. Variables are told
// apart by the declaration that a reference was linked to, not by their name.
type layout struct {
	slots map[*spec.Variable]int
	vars  []*spec.Variable
}

// Slot is the index of v in a row's values; -1 for a variable of no row here.
func (l *layout) Slot(v *spec.Variable) int {
	if i, ok := l.slots[v]; ok {
		return i
	}
	return -1
}

// Len is how many slots a row has.
func (l *layout) Len() int { return len(l.vars) }

// Variables lists the variables by their slots.
func (l *layout) Variables() []*spec.Variable { return l.vars }

func (l *layout) add(v *spec.Variable) {
	if _, ok := l.slots[v]; !ok && v != nil {
		l.slots[v] = len(l.vars)
		l.vars = append(l.vars, v)
	}
}

// layoutOf walks everything of a flow that names a variable. The order of the
// slots is the order in which a reader meets the variables.
func layoutOf(f *spec.Flow) *layout {
	l := &layout{slots: map[*spec.Variable]int{}}
	for _, v := range f.Variables {
		l.add(v)
	}
	for _, refs := range [][]spec.Ref[*spec.Variable]{f.Inputs, f.Outputs} {
		for _, r := range refs {
			l.add(r.To)
		}
	}
	for _, item := range f.Steps {
		s := item.Step.Common()
		for _, refs := range [][]spec.Ref[*spec.Variable]{s.Inputs, s.Outputs} {
			for _, r := range refs {
				l.add(r.To)
			}
		}
		for _, refs := range [][]*spec.Ref[*spec.Variable]{s.DerivedInputs, s.DerivedOutputs} {
			for _, r := range refs {
				l.add(r.To)
			}
		}
	}
	return l
}

// node is one step of a compiled flow.
type node struct {
	id      string
	step    steps.Step            // set for a row-wise step
	batch   steps.Batch           // set for a step over groups of rows
	closer  steps.Closer          // set where the step holds something until the end
	watcher steps.FailureObserver // set where the step wants to know of failed rows
	grouper steps.RowGrouper      // nil where groups end by their size alone
	limit   int                   // the most rows at once that the document allows; 0 where the step does not care
	permits chan struct{}         // holds limit tokens where the stage has more workers than that
	onError errorPolicy           // what becomes of a row that the step failed on; empty means fail
	outputs []int                 // the slots that the step writes
	wait    time.Duration         // how long a group waits for more rows; 0 for as long as it takes
	timed   bool                  // the time of the step is measured
	count   *counter
}

// stage is a run of steps that one goroutine takes a row through before it
// takes the next: no channel stands between them.
type stage struct {
	nodes   []*node
	workers int  // rows at once
	lanes   bool // rows of one session go one after the other, in order
	gathers bool // it is one step that gathers rows: what comes out belongs to no single row
	leg     int  // how many such steps it is behind, itself among them
}

// stagesOf groups the steps of a flow into stages.
//
// A batch step stands alone, and so does Aggregate where it does not part the steps
// of a conversation. Row-wise steps are joined as far as possible; a
// new stage begins before a step with workers when the stage so far makes many
// rows of one, because workers are given whole input rows. Between the first
// and the last step that uses a memory rows of one session keep their order
// through all of the steps, so that a conversation is the same whatever the
// number of workers: these steps always stay together.
func stagesOf(items []*spec.StepItem, nodes []*node) []stage {
	first, last := memorySpan(items)
	var stages []stage
	var open *stage
	fansOut, leg := false, 0
	for i, n := range nodes {
		inSpan := i > first && i <= last && first >= 0
		switch {
		case n.batch != nil, n.closer != nil && !inSpan:
			leg++
			stages = append(stages, stage{nodes: []*node{n}, workers: 1, gathers: true, leg: leg})
			open = nil
			continue
		case open == nil, fansOut && !inSpan && n.limit > 1, i == first && fansOut && spanWorkers(nodes, first, last) > 1:
			stages = append(stages, stage{workers: 1, leg: leg})
			open, fansOut = &stages[len(stages)-1], false
		}
		open.nodes = append(open.nodes, n)
		open.workers = max(open.workers, n.limit)
		open.lanes = open.lanes || (i >= first && i <= last && first >= 0)
		fansOut = fansOut || emitsMany(items[i].Step)
	}
	for _, s := range stages {
		for _, n := range s.nodes {
			if n.limit > 0 && n.limit < s.workers {
				n.permits = make(chan struct{}, n.limit)
			}
		}
	}
	return stages
}

// memorySpan is the range of steps from the first to the last that uses a
// memory; -1, -1 where none does.
func memorySpan(items []*spec.StepItem) (first, last int) {
	first, last = -1, -1
	for i, item := range items {
		if usesMemory(item.Step) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

func spanWorkers(nodes []*node, first, last int) int {
	workers := 1
	for _, n := range nodes[first : last+1] {
		workers = max(workers, n.limit)
	}
	return workers
}

// usesMemory tells whether a step reads or writes a chat memory, itself or
// through a flow that it runs.
func usesMemory(s spec.Step) bool {
	for _, f := range callees(s) {
		if first, _ := memorySpan(f.Steps); first >= 0 {
			return true
		}
	}
	return memoryOf(s) != nil
}

// callees are the flows that a step runs, itself or as tools, in document order.
func callees(s spec.Step) []*spec.Flow {
	var refs []spec.Ref[*spec.Flow]
	switch s := s.(type) {
	case *spec.InvokeFlow:
		refs = append(refs, s.Flow)
	case *spec.Loop:
		refs = append(refs, s.Flow)
	case *spec.Parallel:
		refs = s.Flows
	case *spec.Switch:
		for _, c := range s.Cases {
			refs = append(refs, c.Flow)
		}
		refs = append(refs, s.Else)
	}
	for _, ref := range toolsOf(s) {
		if t, ok := ref.To.(*spec.FlowTool); ok {
			refs = append(refs, t.Flow)
		}
	}
	var flows []*spec.Flow
	for _, r := range refs {
		if r.To != nil {
			flows = append(flows, r.To)
		}
	}
	return flows
}

// emitsMany tells whether a step makes more than one row of one (steps.md 1,
// cardinality 1:N). A Switch makes as many as its flow does; Loop and Parallel
// take flows that make one.
func emitsMany(s spec.Step) bool {
	switch s.(type) {
	case *spec.Explode, *spec.FieldExtractor, *spec.FileSource, *spec.SQLSource,
		*spec.DocumentSource, *spec.DocumentSplitter, *spec.InvokeFlow, *spec.Switch:
		return true
	}
	return false
}

// nodeOf wraps a built step.
func nodeOf(s spec.Step, r steps.Runner, l *layout) (*node, error) {
	base := s.Common()
	n := &node{id: s.EntityID(), count: &counter{}, onError: errorPolicy(base.OnError), outputs: outputSlots(base, l)}
	c := retryPolicyOf(base)
	switch r := r.(type) {
	case steps.Batch:
		n.batch = r
		if c != nil {
			n.batch = &retryBatch{retryPolicy: c, batch: r}
		}
	case steps.Step:
		n.step = r
		if c != nil {
			n.step = &retryStep{retryPolicy: c, id: n.id, step: r}
		}
	default:
		return nil, fmt.Errorf("step %s: it handles neither rows nor groups of rows", n.id)
	}
	n.closer, _ = r.(steps.Closer)
	n.watcher, _ = r.(steps.FailureObserver)
	n.grouper, _ = r.(steps.RowGrouper)
	if c, ok := s.(interface{ Workers() int }); ok {
		n.limit = c.Workers()
	}
	if b, ok := s.(interface{ Wait() time.Duration }); ok && n.batch != nil {
		n.wait = b.Wait()
	}
	return n, nil
}

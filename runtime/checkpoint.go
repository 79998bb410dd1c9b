package runtime

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// CheckpointKey names a row on one leg of its way: from the input to the first step that
// gathers rows, from there to the next, and to the end of the flow.
type CheckpointKey struct {
	Leg    int      // how many steps that gather rows are in front
	Row    int64    // the input row's number, on leg 0
	Digest [16]byte // on the other legs: what the row holds, and the how manieth it is of those that hold the same
}

// CheckpointRow is one row at the end of a leg.
type CheckpointRow struct {
	Data []byte       // the row, for the same flow to read again
	Err  *steps.Error // why the row failed, nil where it did not; not kept, for it is in Data too
}

// Checkpointer keeps what rows become on each leg of a flow that gathers rows, so that
// a run that was interrupted can go on where it was: what is known is not done again.
type Checkpointer interface {
	// Keep takes rows that the marked one became; last says that they are all.
	// The rows must not be held on to. It is called by several goroutines at once;
	// its error ends the run.
	Keep(row CheckpointKey, made []CheckpointRow, last bool) error
	// Kept hands over all that the marked row became in an earlier run. It answers
	// false where that is not known. Of each leg only one goroutine asks.
	Kept(row CheckpointKey, take func(data []byte) error) (known bool, err error)
}

// WithCheckpoints keeps what rows become between the steps that gather them, and
// does not do again what k knows. Results that were known are marked as such, and
// hold the flow's outputs alone.
func WithCheckpoints(k Checkpointer) RunOption { return func(r *run) { r.keeper = k } }

// NotResumableError says why it cannot be told of a flow how far its rows have come.
type NotResumableError struct {
	Flow string // the flow's id
	Step string // the step that makes it so
}

// Error names the step.
func (e *NotResumableError) Error() string {
	return fmt.Sprintf("step %s of flow %s counts rows between steps of one conversation: how far they have come cannot be told", e.Step, e.Flow)
}

// BatchSteps lists the steps of the flow that gather rows, by their ids and in the
// order of the flow: what comes out of those belongs to no single row. A run of a
// flow that has some is resumed with WithCheckpoints, one of another flow with
// WithRowDone. The error is a *NotResumableError for a flow with neither.
func (a *App) BatchSteps(f *spec.Flow) ([]string, error) {
	c, err := a.compile(f)
	if err != nil {
		return nil, err
	}
	return c.batchSteps()
}

func (f *flow) batchSteps() (ids []string, err error) {
	for _, s := range f.stages {
		if s.gathers {
			ids = append(ids, s.nodes[0].id)
			continue
		}
		for _, n := range s.nodes {
			if n.closer != nil {
				return ids, &NotResumableError{Flow: f.spec.ID, Step: n.id}
			}
		}
	}
	return ids, nil
}

// checkResumable refuses a run that nobody can tell of what was asked.
func (r *run) checkResumable() error {
	if r.finished == nil && r.keeper == nil {
		return nil
	}
	ids, err := r.flow.batchSteps()
	switch {
	case err != nil:
		return err
	case r.finished != nil && len(ids) > 0:
		return fmt.Errorf("step %s of flow %s gathers rows: which are finished is known to a Keeper alone", ids[0], r.flow.spec.ID)
	}
	return nil
}

// liveSlots lists the slots that are read by the steps of a leg, by those behind it,
// and by who takes the flow's results. The step that begins a leg is part of it.
func (f *flow) liveSlots(leg int) []int {
	read := make([]bool, f.layout.Len())
	mark := func(v *spec.Variable) {
		if at := f.layout.Slot(v); at >= 0 {
			read[at] = true
		}
	}
	for _, ref := range f.spec.Outputs {
		mark(ref.To)
	}
	i := 0
	for _, s := range f.stages {
		for range s.nodes {
			if s.leg >= leg {
				f.markReads(f.spec.Steps[i].Step, mark, read)
			}
			i++
		}
	}
	var slots []int
	for at, is := range read {
		if is {
			slots = append(slots, at)
		}
	}
	return slots
}

// markReads marks what a step reads.
func (f *flow) markReads(s spec.Step, mark func(*spec.Variable), read []bool) {
	base := s.Common()
	for _, ref := range base.Inputs {
		mark(ref.To)
	}
	for _, ref := range base.DerivedInputs {
		mark(ref.To)
	}
	switch s := s.(type) {
	case *spec.Collect:
		for _, ref := range s.By {
			mark(ref.To)
		}
	case *spec.FileWriter:
		if len(s.Inputs) == 0 { // it writes all that is set
			copy(read, slices.Repeat([]bool{true}, len(read)))
		}
	}
}

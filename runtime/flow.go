package runtime

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

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

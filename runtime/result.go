package runtime

import (
	"iter"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Result is one row that came out of a flow.
type Result struct {
	Number   int64          // the input row that it came from, counted from 1; 0 if it came from several
	Session  string         // the conversation
	Err      *steps.Error   // why the row failed; nil if it did not
	Replayed bool           // an earlier run computed it; see WithCheckpoints
	Trace    *steps.TraceID // the run of the flow in traces, the same for all of its results; nil if there are none
	outputs  []outputSlot
	slots    *layout
	values   []any
}

// Get returns the value of a variable of the flow and whether it was set.
func (r *Result) Get(id string) (any, bool) {
	for i, v := range r.slots.vars {
		if v.ID == id && i < len(r.values) && r.values[i] != value.Unset {
			return r.values[i], true
		}
	}
	return nil, false
}

// Outputs ranges over the flow's outputs in document order; nil for one that was not set.
func (r *Result) Outputs() iter.Seq2[*spec.Variable, any] {
	return func(yield func(*spec.Variable, any) bool) {
		for _, out := range r.outputs {
			if !yield(out.variable, r.at(out.slot)) {
				return
			}
		}
	}
}

// AppendOutputs appends the values of the flow's outputs to row, in document
// order; nil for one that was not set. It is the cheapest way to read a result:
// a writer of many rows passes the same slice each time.
func (r *Result) AppendOutputs(row []any) []any {
	for _, out := range r.outputs {
		row = append(row, r.at(out.slot))
	}
	return row
}

func (r *Result) at(slot int) any {
	if slot < 0 || slot >= len(r.values) || r.values[slot] == value.Unset {
		return nil
	}
	return r.values[slot]
}

// result returns a row in the form in which callers see it.
func (f *flow) result(row *steps.Row, outputs []outputSlot) *Result {
	res := &Result{}
	f.fill(res, row, outputs)
	return res
}

func (f *flow) fill(res *Result, row *steps.Row, outputs []outputSlot) {
	*res = Result{Number: row.Number, Session: row.Session, Err: row.Err, Replayed: row.Replayed, slots: f.layout, values: row.Values, outputs: outputs}
}

package runtime

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

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

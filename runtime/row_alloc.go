package runtime

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// rowsPerChunk is how many rows are made at once. What one of them holds may stay in
// memory while another of the slab is held, so it is a small number.
const rowsPerChunk = 16

// rowAllocator makes the rows of a run, several at once: one goroutine's.
type rowAllocator struct {
	flow   *flow
	unset  []any       // slots in which nothing is set
	at     []int       // the slots of the flow's inputs
	rows   []steps.Row // made and not given out
	values []any       // their slots
	inputs []*spec.Variable
}

func (f *flow) newRowAllocator() *rowAllocator {
	s := &rowAllocator{flow: f, unset: make([]any, f.layout.Len())}
	for i := range s.unset {
		s.unset[i] = value.Unset
	}
	for _, ref := range f.spec.Inputs {
		s.inputs, s.at = append(s.inputs, ref.To), append(s.at, f.layout.Slot(ref.To))
	}
	return s
}

// newRow is a row on which nothing is set.
func (s *rowAllocator) newRow(session string, number int64) *steps.Row {
	width := len(s.unset)
	if len(s.rows) == 0 {
		s.rows, s.values = make([]steps.Row, rowsPerChunk), make([]any, rowsPerChunk*width)
	}
	row := &s.rows[0]
	row.Values, row.Session, row.Number, row.Place = s.values[:width:width], session, number, number
	copy(row.Values, s.unset)
	s.rows, s.values = s.rows[1:], s.values[width:]
	return row
}

// fromInput lays an input out in slots, coerced to the declared types.
func (s *rowAllocator) fromInput(in Input, number int64) *steps.Row {
	if in.Session == "" {
		in.Session = DefaultSession
	}
	row := s.newRow(in.Session, number)
	if in.Err != nil {
		row.Err = &steps.Error{Err: in.Err}
		return row
	}
	for i, v := range s.inputs {
		x, err := inputValue(v, in.Values)
		if err != nil {
			row.Err = &steps.Error{Err: err}
			return row
		}
		row.Values[s.at[i]] = x
	}
	return row
}

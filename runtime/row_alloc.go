package runtime

import (
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// rowsPerChunk is how many rows are allocated at once. One row in use keeps its
// whole chunk in memory, so the number is small.
const rowsPerChunk = 16

// nextChunk returns how many rows to allocate after a chunk: a run of one row allocates one.
func nextChunk(last int) int { return min(max(2*last, 1), rowsPerChunk) }

// rowAllocator makes the input rows of a run, a chunk at a time. It is for one goroutine.
type rowAllocator struct {
	unset  []any       // a row in which nothing is set
	rows   []steps.Row // allocated and not used yet
	values []any       // their slots
	chunk  int         // rows that were allocated last
	inputs []inputSlot // the flow's inputs
	header []string    // the columns that the inputs were resolved in

	flow         string // the id of the flow
	needsSession string // a memory that the flow uses, so that each row needs a session; empty for none
}

// inputSlot is an input of a flow and its slot in the flow's rows.
type inputSlot struct {
	variable *spec.Variable
	slot     int
	media    bool // its values have media
	column   int  // in the header that was resolved last; -1 if it has no such column
}

func (f *flow) newRowAllocator() *rowAllocator {
	s := &rowAllocator{unset: make([]any, f.layout.Len()), flow: f.spec.ID, needsSession: memoryUsed(f.spec)}
	for i := range s.unset {
		s.unset[i] = value.Unset
	}
	for _, ref := range f.spec.Inputs {
		s.inputs = append(s.inputs, inputSlot{variable: ref.To, slot: f.layout.Slot(ref.To), media: mediafile.Has(ref.To.Type), column: -1})
	}
	return s
}

// newRow returns a row in which nothing is set.
func (s *rowAllocator) newRow(session string, number int64) *steps.Row {
	width := len(s.unset)
	if len(s.rows) == 0 {
		s.chunk = nextChunk(s.chunk)
		s.rows, s.values = make([]steps.Row, s.chunk), make([]any, s.chunk*width)
	}
	row := &s.rows[0]
	row.Values, row.Session, row.Number, row.Ordinal = s.values[:width:width], session, number, number
	copy(row.Values, s.unset)
	s.rows, s.values = s.rows[1:], s.values[width:]
	return row
}

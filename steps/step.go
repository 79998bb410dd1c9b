// Package steps runs the types of steps, with one file for each type. The engine
// drives them by the small interfaces of this package.
package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Row is one row of a flow. Its variables are slots of an array that is laid out when
// the flow is compiled. A row belongs to one step at a time.
type Row struct {
	Values   []any    // by slot; value.Unset where nothing was set
	Session  string   // the conversation that the row belongs to
	Number   int64    // number of the input row that it came from, counted from 1; 0 if it came from several
	Ordinal  int64    // ordinal in the run, the same after a resume; see Ordinal
	Replayed bool     // its results are known from an earlier run: it passes unchanged to the next batch step
	Err      *Error   // set once the row has failed; later steps pass it on unchanged
	block    *rowPool // the block that it was allocated in; nil for none
}

// ordinalBits is how many bits of an ordinal count the rows of one segment.
const ordinalBits = 48

// Ordinal returns the ordinal of a row of a segment, the part of a run between two
// batch steps. In segment 0, which begins at the input, it is the input row's number.
func Ordinal(segment int, row int64) int64 { return int64(segment)<<ordinalBits | row }

// Clone returns a copy with its own slots; the values in them are shared.
func (r *Row) Clone() *Row {
	c := *r
	c.Values, c.block = slices.Clone(r.Values), nil
	return &c
}

// Error is why a row failed, and in which step.
type Error struct {
	Step string // the step's id; empty for a row that could not be read
	Err  error  // the reason; an *Error for a row that failed in a flow that the step runs
}

// Error names the steps that lead to the failure, and the reason.
func (e *Error) Error() string {
	if e.Step == "" {
		return e.Err.Error()
	}
	path, reason := e.Path()
	return fmt.Sprintf("step %s: %s", strings.Join(path, " > "), reason)
}

// Path returns the ids of the steps that lead to the failure, the outermost first, and
// why the innermost failed. It is empty for a row that could not be read.
func (e *Error) Path() (steps []string, reason error) {
	for {
		if e.Step != "" {
			steps = append(steps, e.Step)
		}
		inner, nested := e.Err.(*Error) //nolint:errorlint // an *Error further down belongs to another run
		if !nested {
			return steps, e.Err
		}
		e = inner
	}
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Emit passes a row on. The step must not use the row afterwards, because its memory
// may be reused. An error of Emit means that no more rows are wanted: the step returns
// it at once.
type Emit func(*Row) error

// Step processes one row at a time. Process is called by several goroutines at the same
// time where the document configures workers.
//
// Process owns the row: it may fill its slots and emit it, emit clones, or emit nothing.
// An error that did not come from emit fails this row only.
type Step interface {
	Process(ctx context.Context, row *Row, emit Emit) error
}

// Batch processes groups of rows. Only one goroutine calls it.
type Batch interface {
	// Size is the maximum number of rows in a group; 0 means all.
	Size() int
	// Batch processes one group, which is not empty and has no failed rows. An error that
	// did not come from emit fails all rows of the group. The step owns the rows but not
	// the slice, which is reused for the next group.
	Batch(ctx context.Context, rows []*Row, emit Emit) error
}

// RowGrouper is implemented by a Batch whose groups may end before their maximum size:
// at a row that does not belong to the rows before it.
type RowGrouper interface {
	// SameGroup reports whether a row belongs to the group of the row before it.
	SameGroup(before, row *Row) bool
	// OtherGroup reports whether a failed row is known to belong to another group.
	OtherGroup(before, failed *Row) bool
}

// Closer is implemented by steps that hold data until the flow ends. Close is called
// once, after the last row, also if the run was canceled.
type Closer interface {
	Close(ctx context.Context, emit Emit) error
}

// FailureObserver is implemented by steps that count failed rows, which skip the step.
// Failed is called before such a row is passed on.
type FailureObserver interface{ Failed(row *Row) }

// Runner is a Step or a Batch.
type Runner any

// Slots is the layout of a flow's rows.
type Slots interface {
	// Slot returns the index in Row.Values.
	Slot(v *spec.Variable) int
	// Len returns the number of slots of a row.
	Len() int
}

// Variables is implemented by Slots that can list the variables in the order of their
// slots; a FileWriter without inputs writes all of them.
type Variables interface{ Variables() []*spec.Variable }

// Package steps is how each step type runs: one file for each type, and the
// small interfaces that the engine drives them by.
package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Row is one message travelling through a flow. Its variables are slots of an
// array that is laid out when the flow is compiled. A row belongs to one step at a time.
type Row struct {
	Values  []any    // by slot; value.Unset where nothing was set
	Session string   // the conversation that the row belongs to
	Number  int64    // the input row that it came from, counted from 1; 0 where it came from many
	Place   int64    // where it stands in the run, the same when the run is resumed; see Ordinal
	Done    bool     // what became of it is known from before: it is passed on untouched up to the next step that gathers rows
	Err     *Error   // set once the row has failed; later steps pass it on untouched
	block   *rowPool // what it was made in one piece with; nil for a row of its own
}

// ordinalBits is how many bits of a place count the rows of one leg.
const ordinalBits = 48

// Ordinal is the place of the row-th row of a leg: the way of a run from one step
// that gathers rows to the next. In leg 0, which begins at the input, the place
// is the input row's number.
func Ordinal(leg int, row int64) int64 { return int64(leg)<<ordinalBits | row }

// Clone is a copy with slots of its own; the values in them are shared.
func (r *Row) Clone() *Row {
	c := *r
	c.Values, c.block = slices.Clone(r.Values), nil
	return &c
}

// Error tells why a row failed, and in which step.
type Error struct {
	Step string // the step's id; empty for a row that could not be read
	Err  error  // why; an *Error for a row that failed in a flow that the step runs
}

// Error names the step, the way to it through the steps that run flows, and the reason.
func (e *Error) Error() string {
	if e.Step == "" {
		return e.Err.Error()
	}
	path, reason := e.Path()
	return fmt.Sprintf("step %s: %s", strings.Join(path, " > "), reason)
}

// Path is the ids of the steps that lead to the failure, the outermost first,
// and why the innermost failed. It is empty for a row that could not be read.
func (e *Error) Path() (steps []string, reason error) {
	for {
		if e.Step != "" {
			steps = append(steps, e.Step)
		}
		inner, nested := e.Err.(*Error) //nolint:errorlint // an *Error further down is another run's
		if !nested {
			return steps, e.Err
		}
		e = inner
	}
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// Emit passes a row on, which from then on is not the step's: it must not look
// at it again, for its memory may serve another row already. Its error means that
// nobody wants rows any more: the step returns it at once.
type Emit func(*Row) error

// Step handles one row at a time: 1:1 and 1:N steps. Process is called by
// several goroutines at once where the document asks for workers.
//
// Process owns the row: it may fill its slots and emit it, or emit clones, or
// emit nothing. An error that did not come from emit fails this row alone.
type Step interface {
	Process(ctx context.Context, row *Row, emit Emit) error
}

// Batch handles groups of rows: N:1 steps. Only one goroutine calls it.
type Batch interface {
	// Size is the most rows in a group; 0 means all of them.
	Size() int
	// Batch handles one group, never empty, without failed rows. An error that
	// did not come from emit fails all rows of the group. The rows are the
	// step's own, the slice is not: it is filled again for the next group.
	Batch(ctx context.Context, rows []*Row, emit Emit) error
}

// RowGrouper is implemented by a Batch whose groups end earlier than by their
// size: before a row that does not belong to the rows before it.
type RowGrouper interface {
	// SameGroup tells whether a row belongs to the group of the row before it.
	SameGroup(before, row *Row) bool
	// OtherGroup tells whether a failed row is known not to belong to it.
	OtherGroup(before, failed *Row) bool
}

// Closer is implemented by steps that hold something until the flow ends.
// Close is called once, after the last row, also when the run was cancelled.
type Closer interface {
	Close(ctx context.Context, emit Emit) error
}

// FailureObserver is implemented by steps that want to know of the failed rows, which
// pass them untouched. Failed is called before such a row goes on.
type FailureObserver interface{ Failed(row *Row) }

// Runner is a Step or a Batch.
type Runner any

// Slots tells where the variables of a flow stand in its rows.
type Slots interface {
	// Slot is the index in Row.Values.
	Slot(v *spec.Variable) int
	// Len is how many slots a row has.
	Len() int
}

// Variables is implemented by Slots that can list the variables, in the order
// of their slots; a FileWriter without inputs writes all of them.
type Variables interface{ Variables() []*spec.Variable }

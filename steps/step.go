// Package steps runs the types of steps, with one file for each type. The engine
// drives them by the small interfaces of this package.
package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/rowcounts"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
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

// noRow is the ordinal of what no row of a run does.
const noRow = -1

// Ordinal returns the ordinal of a row of a segment, the part of a run between two
// batch steps. In segment 0, which begins at the input, it is the input row's number.
func Ordinal(segment int, row int64) int64 { return int64(segment)<<rowcounts.SegmentBits | row }

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

// rowPool is a block of rows that were made of one row. Once all of them are released
// the block is reused: flows that expand and collect lists would otherwise leave most
// of what they allocate to the garbage collector.
type rowPool struct {
	rows   []Row
	values []any
	live   atomic.Int32 // rows that are not released
	home   *sync.Pool   // the pool that the block returns to
}

// clones returns n copies like those of Clone, allocated in one block of home.
func (r *Row) clones(n int, home *sync.Pool) []Row {
	width := len(r.Values)
	p, _ := home.Get().(*rowPool)
	if p == nil || len(p.rows) < n || len(p.values) < n*width {
		p = &rowPool{rows: make([]Row, n), values: make([]any, n*width), home: home}
	}
	p.live.Store(int32(n))
	rows := p.rows[:n]
	for i := range rows {
		rows[i] = *r
		rows[i].block = p
		rows[i].Values = p.values[i*width : (i+1)*width : (i+1)*width]
		copy(rows[i].Values, r.Values)
	}
	return rows
}

// release returns rows to their pools. The caller, and every step and caller that the
// rows were emitted to, must not use them afterwards.
func release(rows []*Row) {
	for _, r := range rows {
		p := r.block
		if p == nil {
			continue
		}
		r.block = nil
		if p.live.Add(-1) == 0 {
			clear(p.rows)
			clear(p.values)
			p.home.Put(p)
		}
	}
}

// slot is the position of a variable in a row.
type slot struct {
	at int            // the index in Row.Values
	of *spec.Variable // the declaration
}

// slot finds a variable of the flow.
func (e *Env) slot(v *spec.Variable) (slot, error) {
	if v == nil {
		return slot{}, fmt.Errorf("a variable is not linked")
	}
	at := e.Slots.Slot(v)
	if at < 0 || at >= e.Slots.Len() {
		return slot{}, fmt.Errorf("variable %s is not part of the flow", v.ID)
	}
	return slot{at, v}, nil
}

// slots finds the variables of references.
func (e *Env) slots(refs []spec.Ref[*spec.Variable]) ([]slot, error) {
	var all []slot
	for i := range refs {
		s, err := e.slot(refs[i].To)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// single finds the only variable of a list of references; what names the list.
func (e *Env) single(what string, refs []spec.Ref[*spec.Variable]) (slot, error) {
	if len(refs) != 1 {
		return slot{}, fmt.Errorf("needs exactly 1 %s, has %d", what, len(refs))
	}
	return e.slot(refs[0].To)
}

// inOut finds the input and the output of a step with exactly one of each.
func (e *Env) inOut(s *spec.StepBase) (in, out slot, err error) {
	if in, err = e.single("input", s.Inputs); err != nil {
		return slot{}, slot{}, err
	}
	out, err = e.single("output", s.Outputs)
	return in, out, err
}

// read returns the value, or an error if it was never set.
func (s slot) read(row *Row) (any, error) {
	v := row.Values[s.at]
	if v == value.Unset {
		return nil, fmt.Errorf("variable %s is not set", s.of.ID)
	}
	return v, nil
}

// orNull returns the value, nil if it was never set.
func (s slot) orNull(row *Row) any {
	if v := row.Values[s.at]; v != value.Unset {
		return v
	}
	return nil
}

// write sets the variable.
func (s slot) write(row *Row, v any) { row.Values[s.at] = v }

// isPrimitive reports whether the declared type is a primitive, whose variables keep
// values of other kinds.
func (s slot) isPrimitive() bool { return s.of.Type.IsPrimitive() || s.of.Type.Is("MessageRole") }

// setCoerced sets the variable to a value from outside of the flow, converted to the
// declared type. A scalar that does not convert to a declared primitive is stored
// unchanged: the results of paths and tools are not checked.
func (s slot) setCoerced(row *Row, raw any) error {
	v, err := value.Assign(s.of, raw)
	if err != nil && s.isPrimitive() {
		v, err = value.FromGo(raw), nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.ID, err)
	}
	s.write(row, v)
	return nil
}

// binding is a name of the invoked tool or flow and the variable bound to it.
type binding struct {
	name string
	slot slot
}

// bindings finds the variables of bindings.
func (e *Env) bindings(bs spec.Bindings) ([]binding, error) {
	var all []binding
	for _, b := range bs {
		s, err := e.slot(b.Var.To)
		if err != nil {
			return nil, fmt.Errorf("binding %s: %w", b.Name, err)
		}
		all = append(all, binding{b.Name, s})
	}
	return all, nil
}

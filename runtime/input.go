package runtime

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// DefaultSession is the session of rows without one, in flows that use no memory.
// Other flows need a session for every row; see NoSessionError.
const DefaultSession = "default"

// Input is one row to run. Its values are in Values, or in Cells under the names
// in Columns: the form for rows of a file, whose names are resolved once for all
// rows that share the slice Columns. What the flow does not take is ignored. Run
// reads an Input before it takes the next one and retains neither the map nor the
// slices.
type Input struct {
	Values  map[string]any // by variable id; not read if Columns is set
	Columns []string       // the names of the cells; must not change while the run lasts
	Cells   []any          // one value for each column
	Text    bool           // string cells are untyped text, as in CSV: the declared type decides how to read it
	Session string         // the conversation; a flow that uses a memory needs one, see NoSessionError
	Number  int64          // the row's number in results and errors; 0 means one more than the row before
	Err     error          // why the row could not be read: it keeps its place as a failed row

	// Base lets the row name files as values of media types, such as image: by paths and
	// public addresses. It is the path or the address of the file that the row is from:
	// relative names are in its folder; "./" is the current folder. Empty: the row must not
	// name files, which is right for rows of callers that are not trusted to read them.
	Base string
	// AnyFile lets the row name all files of this computer, as what the user types may; without
	// it, those in the folder of Base and below it.
	AnyFile bool

	encoded []byte     // the whole row; see EncodedInput
	row     *steps.Row // the whole row; see HeadInput
}

// Row returns an Input that has only values.
func Row(values map[string]any) Input { return Input{Values: values} }

// resolve finds the flow's inputs in a header, unless it is that of the row before.
func (s *rowAllocator) resolve(columns []string) {
	if len(columns) == len(s.header) && (len(columns) == 0 || &columns[0] == &s.header[0]) {
		return
	}
	s.header = columns
	for i := range s.inputs {
		s.inputs[i].column = slices.Index(columns, s.inputs[i].variable.ID)
	}
}

// fromInput returns an input as a row, its values coerced to the declared types.
func (s *rowAllocator) fromInput(ctx context.Context, in Input, number int64) *steps.Row {
	switch {
	case in.encoded != nil:
		row := s.decode(in.encoded)
		if row.Err == nil && in.Err != nil {
			row.Err = &steps.Error{Err: in.Err}
		}
		return row
	case in.row != nil:
		return in.row
	}
	err := in.Err
	switch {
	case in.Session != "":
	case s.needsSession == "":
		in.Session = DefaultSession
	case err == nil:
		err = &NoSessionError{Flow: s.flow, Memory: s.needsSession}
	}
	row := s.newRow(in.Session, number)
	if err == nil && in.Columns != nil {
		s.resolve(in.Columns)
	}
	for i := 0; i < len(s.inputs) && err == nil; i++ {
		to := &s.inputs[i]
		raw, ok := to.find(&in)
		if to.media && ok {
			raw, err = loadMedia(trust.ForUser(ctx), to.variable, raw, &mediafile.Source{Base: in.Base, AnyFile: in.AnyFile})
		}
		if err == nil {
			row.Values[to.slot], err = inputValue(to.variable, raw, ok)
		}
	}
	if err != nil {
		row.Err = &steps.Error{Err: err}
	}
	return row
}

// find returns the value of the flow input and whether the row has one.
func (s *inputSlot) find(in *Input) (raw any, ok bool) {
	switch {
	case in.Columns == nil:
		raw, ok = in.Values[s.variable.ID]
		return raw, ok
	case s.column < 0 || s.column >= len(in.Cells):
		return nil, false
	}
	raw = in.Cells[s.column]
	if text, isText := raw.(string); isText && in.Text {
		raw = value.ParseCell(text)
	}
	return raw, true
}

// loadMedia replaces the names of files in a value by their content, and checks all media.
func loadMedia(ctx context.Context, v *spec.Variable, raw any, files *mediafile.Source) (any, error) {
	t := v.Type
	t.Optional = v.IsOptional()
	loaded, err := files.Load(ctx, t, raw)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", v.ID, err)
	}
	return loaded, nil
}

// inputValue converts the value of a flow input to its declared type.
func inputValue(v *spec.Variable, raw any, ok bool) (any, error) {
	switch {
	case ok && raw != nil:
		x, err := value.Coerce(v.Type, raw)
		if err != nil {
			return value.Unset, fmt.Errorf("input %s: %w", v.ID, err)
		}
		return x, nil
	case v.IsOptional() && ok:
		return nil, nil
	case v.IsOptional():
		return value.Unset, nil
	case ok:
		return value.Unset, fmt.Errorf("input %s: it is null, expected %s", v.ID, v.Type)
	}
	return value.Unset, fmt.Errorf("input %s (%s) is missing", v.ID, v.Type)
}

// decode returns an encoded input as a row.
func (s *rowAllocator) decode(data []byte) *steps.Row {
	row := s.newRow("", 0)
	from := checkpoint.RowDecoder{Slots: s.slots()}
	if err := from.Decode(data, row); err != nil {
		row.Err = &steps.Error{Err: err}
	}
	row.Ordinal = row.Number
	return row
}

// slots returns the slots of the flow's inputs.
func (s *rowAllocator) slots() []int {
	all := make([]int, len(s.inputs))
	for i := range s.inputs {
		all[i] = s.inputs[i].slot
	}
	return all
}

// StepProgress is the progress of a step.
type StepProgress struct {
	Step   string // the step's id
	In     int64  // rows that it has received
	Done   int64  // rows that it has emitted
	Failed int64  // rows that failed in it

	// Hits and Misses count the rows whose results were cached, and were not; both
	// are 0 for a step without a cache.
	Hits, Misses int64

	// Time is how long the step has worked, summed over its workers; 0 without
	// WithStepTimes.
	Time time.Duration

	// Index is what the step did to an index; nil if it writes to none.
	Index *steps.IndexCounts
}

// Progress is the progress of one run. Its methods are safe for concurrent use.
type Progress struct {
	nodes atomic.Pointer[[]*node]
	rows  atomic.Int64
	done  atomic.Int64
	fails atomic.Int64
	steps atomic.Pointer[[]StepProgress] // of a run in other processes; see Set
}

// Set replaces the progress by that of a run in other processes.
func (p *Progress) Set(read, done, failed int64, all []StepProgress) {
	p.rows.Store(read)
	p.done.Store(done)
	p.fails.Store(failed)
	p.steps.Store(&all)
}

// Rows returns the numbers of input rows, of results, and of failed results so far. It
// does not count rows that were replayed from checkpoints.
func (p *Progress) Rows() (read, done, failed int64) {
	return p.rows.Load(), p.done.Load(), p.fails.Load()
}

// HasFailures reports whether a row has failed in a step, also in a flow that a step runs, or if the step dropped it.
func (p *Progress) HasFailures() bool {
	nodes := p.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(n *node) bool { return n.failures != nil && n.failures.Load() > 0 })
}

// Steps returns the progress of each step in the order of the flow; nil before the run.
func (p *Progress) Steps() []StepProgress {
	if elsewhere := p.steps.Load(); elsewhere != nil {
		return slices.Clone(*elsewhere)
	}
	nodes := p.nodes.Load()
	if nodes == nil {
		return nil
	}
	all := make([]StepProgress, len(*nodes))
	for i, n := range *nodes {
		all[i] = StepProgress{Step: n.id, In: n.count.in.Load(), Done: n.count.done.Load(), Failed: n.count.failed.Load(),
			Hits: n.count.hits.Load(), Misses: n.count.misses.Load(), Time: time.Duration(n.count.time.Load())}
		if n.index != nil {
			counts := n.index.Counts()
			all[i].Index = &counts
		}
	}
	return all
}

// NoSessionError is why a row without a session failed: its flow uses a memory, and a
// conversation that several rows share only because none of them names it would mix what
// belongs to different users.
type NoSessionError struct {
	Flow   string // the flow's id
	Memory string // the id of a memory that it uses
}

// Error returns what is missing.
func (e *NoSessionError) Error() string {
	return fmt.Sprintf("the row has no session, and flow %s uses memory %s: set Input.Session", e.Flow, e.Memory)
}

// UsesSessions reports whether a flow, a flow that it runs or a tool that its steps may
// call uses a memory. Each row of such a flow needs a session.
func UsesSessions(f *spec.Flow) bool { return memoryUsed(f) != "" }

// memoryUsed returns the id of the first memory that a flow uses, empty for none.
func memoryUsed(f *spec.Flow) string {
	for s := range f.Plan().All() {
		if memories := s.Memories(); len(memories) > 0 {
			return memories[0].ID
		}
	}
	return ""
}

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

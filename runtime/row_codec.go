package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// NotDivisibleError reports a flow whose rows cannot be divided among processes.
type NotDivisibleError struct {
	Flow   string // the flow's id
	Reason string // what depends on all rows
}

// Error returns the reason.
func (e *NotDivisibleError) Error() string {
	return fmt.Sprintf("the rows of flow %s cannot be divided among workers: %s", e.Flow, e.Reason)
}

// RowCodec converts the rows of a flow and their results to bytes and back, so that
// other processes can run the rows. It is for one goroutine: what it appends to a
// sequence of results depends on the results before.
type RowCodec struct {
	flow    *flow
	rows    *rowAllocator
	inputs  checkpoint.RowEncoder
	results checkpoint.RowEncoder
	decoder checkpoint.RowDecoder
	outputs []outputSlot
	scope   memory.Scope // of the rows that must run one after the other; see Order
}

// NewRowCodec returns the codec of a flow. The error is a *NotDivisibleError for a flow whose steps
// count the rows of a conversation. A budget is one for all rows too; see WithSharedBudget.
func (a *App) NewRowCodec(flowID string) (*RowCodec, error) {
	declared, err := a.Flow(flowID)
	if err != nil {
		return nil, err
	}
	c, err := a.compile(declared, 0)
	if err != nil {
		return nil, err
	}
	if _, err := c.batchSteps(); err != nil {
		return nil, &NotDivisibleError{Flow: declared.ID, Reason: err.Error()}
	}
	codec := &RowCodec{flow: c, rows: c.newRowAllocator(), outputs: c.outputs(), scope: memory.Scope(scopeOf(declared))}
	codec.inputs = checkpoint.RowEncoder{Slots: codec.rows.slots(), Code: ErrorCode}
	codec.setResults(c.outputSlots())
	return codec, nil
}

// setResults sets the slots that encoded results have.
func (c *RowCodec) setResults(slots []int) {
	c.results = checkpoint.RowEncoder{Slots: slots, Code: ErrorCode}
	c.decoder = checkpoint.RowDecoder{Slots: slots}
}

// HasBatches reports whether the flow has batch steps, so that only its steps before the first of them can run in several
// processes; see WithHead and WithTail.
func (c *RowCodec) HasBatches() bool { return slices.ContainsFunc(c.flow.stages, isBatch) }

// BatchSteps returns the ids of the flow's batch steps.
func (c *RowCodec) BatchSteps() []string {
	ids, _ := c.flow.batchSteps() // NewRowCodec has checked it
	return ids
}

// Head returns the codec for the results of a run of the flow with WithHead.
func (c *RowCodec) Head() *RowCodec {
	head := &RowCodec{flow: c.flow, rows: c.rows, inputs: c.inputs, outputs: c.outputs, scope: c.scope}
	stages := c.flow.stages
	head.setResults(c.flow.liveSlots(stages[len(headOf(stages))].segment))
	return head
}

// scopeOf returns the widest scope of the memories that a flow uses.
func scopeOf(f *spec.Flow) spec.Scope {
	scope := spec.ScopeSession
	for _, s := range f.Plan().Steps {
		if s.UsesMemory() {
			scope = scope.Widest(s.MemoryScope())
		}
	}
	return scope
}

// outputSlots returns the slots of the flow's outputs, each once.
func (f *flow) outputSlots() []int { return f.liveSlots(len(f.stages) + 1) }

// HasSessions reports whether the flow uses a memory, so that rows of one session must
// run in order.
func (c *RowCodec) HasSessions() bool { return c.rows.needsSession != "" }

// Order returns a name; rows with the same name use the same conversation and must run
// one after the other: the rows of a session, or of what its memories share among
// sessions.
func (c *RowCodec) Order(session string) string { return c.scope.Session(session) }

// EncodeInput returns an input as bytes for EncodedInput. The values are converted to
// the declared types, and files that they name are read; a row with an input that does
// not fit is encoded with its error. number is used if the input has no number.
func (c *RowCodec) EncodeInput(ctx context.Context, in Input, number int64) (data []byte, session string) {
	if in.Number > 0 {
		number = in.Number
	}
	row := c.rows.fromInput(ctx, in, number)
	c.inputs.Reset()
	return c.inputs.Append(nil, row), row.Session
}

// NumberOf returns the number of a row that EncodeInput has encoded.
func (c *RowCodec) NumberOf(data []byte) int64 { return c.rows.decode(data).Number }

// EncodedInput returns the input that EncodeInput has encoded, for a run of the same flow.
func EncodedInput(data []byte) Input { return Input{encoded: data} }

// HeadInput returns the input of a run with WithTail for a result of a run of the same flow with WithHead.
func HeadInput(res *Result) Input {
	return Input{row: &steps.Row{Values: res.values, Session: res.Session, Number: res.Number, Ordinal: res.Number, Err: res.Err}}
}

// AppendResult appends a result to b, for DecodeResult, which must get the results of a
// sequence in the same order. Reset begins a sequence.
func (c *RowCodec) AppendResult(b []byte, res *Result) []byte {
	return c.results.Append(b, &steps.Row{Values: res.values, Session: res.Session, Number: res.Number, Err: res.Err})
}

// Reset begins a sequence of results.
func (c *RowCodec) Reset() {
	c.results.Reset()
	c.decoder = checkpoint.RowDecoder{Slots: c.decoder.Slots}
}

// DecodeResult returns a result that AppendResult has encoded. It has the flow's outputs
// only, or what the steps after WithHead read, and its error has the text and the code of the original one.
func (c *RowCodec) DecodeResult(data []byte) (*Result, error) {
	row := c.flow.newRow("", 0)
	if err := c.decoder.Decode(data, row); err != nil {
		return nil, err
	}
	return c.flow.result(row, c.outputs), nil
}

// WithRowStore records finished rows in s, and does not run rows that s has, as
// WithCheckpoints does. id is the id of the run; see WithRunID.
func WithRowStore(s checkpoint.Store, flowID, id string) RunOption {
	return func(r *run) { r.checkpoints, r.checkpointFlow, r.id = s, flowID, id }
}

package steps

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// observedTurn reports a turn of a memory as an operation; nil reports nothing.
type observedTurn struct {
	finish func(*OperationResult)
	report *memory.TurnReport
}

// observeTurn reports that a turn of the step's memory begins.
func (s *llmStep) observeTurn(ctx context.Context, row *Row) (context.Context, *observedTurn) {
	if s.memory == nil || !Observed(ctx) {
		return ctx, nil
	}
	ctx, end := Observe(ctx, &Operation{Kind: OperationMemory, ID: s.declared, Session: row.Session})
	return ctx, &observedTurn{finish: end}
}

// begun requests the report of the turn.
func (o *observedTurn) begun(d *conversation) {
	if o != nil {
		o.report = d.turn.Report()
	}
}

// end reports the end of the turn.
func (o *observedTurn) end(d *conversation, err error) {
	if o == nil {
		return
	}
	r := &OperationResult{Err: err}
	if d != nil && o.report != nil && o.report.Version != 0 {
		r.Turn = o.report
	}
	o.finish(r)
}

// observeWindow returns the window of the conversation. If the memory retrieved
// earlier messages for it, that is reported as an operation.
func (s *llmStep) observeWindow(ctx context.Context, d *conversation, b memory.Budget) ([]chat.Message, error) {
	if d.turn == nil || !Observed(ctx) {
		return d.window(b)
	}
	begun := time.Now()
	window, err := d.window(b)
	if found := d.turn.Retrieved(); len(found) > 0 {
		span := StartSpan(ctx, &Operation{Kind: OperationRetrieval, ID: s.declared, Begun: begun})
		span.End(&OperationResult{Err: err, Retrieved: found})
	}
	return window, err
}

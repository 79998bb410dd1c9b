package steps

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// Observer receives the operations of runs, for traces and metrics. Its methods are
// called by several goroutines at once and must not block for long.
type Observer interface {
	// Start is called when an operation begins. ctx has the enclosing operation, by
	// Span.Context. nil ignores the operation; those within it are still reported.
	Start(ctx context.Context, op *Operation) Span
}

// Span is an operation that an Observer was notified of.
type Span interface {
	// Context returns ctx with the operation as the enclosing one. It may be called
	// several times, also concurrently.
	Context(ctx context.Context) context.Context
	// End is called once, when the operation has ended.
	End(*OperationResult)
}

// OperationKind is the kind of an Operation.
type OperationKind string

// The kinds of operations. A flow encloses its steps, a step its rows or batches, and
// these enclose what the step calls: models, tools, memories and other flows.
const (
	OperationFlow      OperationKind = "flow"      // a run of a flow, or a call of one by a step or a tool
	OperationStep      OperationKind = "step"      // a step, with all rows of one run of the flow
	OperationRow       OperationKind = "row"       // a step on one row; there is none if a cache has the results
	OperationCacheHit  OperationKind = "cache"     // a step on one row whose results are from its cache
	OperationBatch     OperationKind = "batch"     // a step on a group of rows
	OperationModel     OperationKind = "model"     // one attempt to call a chat model; each retry and fallback is another
	OperationEmbedding OperationKind = "embedding" // one attempt to call an embedding model
	OperationTool      OperationKind = "tool"      // a call of a tool
	OperationMemory    OperationKind = "memory"    // a turn of a memory: it waits, reads, calls the model, and commits
	OperationStore     OperationKind = "store"     // an operation of the store of a memory: head, entries, apply, delete or remove
	OperationRetrieval OperationKind = "retrieval" // a memory retrieves earlier messages for a call of the model
)

// Operation describes an operation that begins. Its values must not be modified; the
// slices and maps are valid until Start returns.
type Operation struct {
	Kind    OperationKind // what the operation does
	ID      string        // of the flow, step, model, tool or memory
	Begun   time.Time     // when it began; the zero time for now
	Session string        // row, cache, memory: the session as stored
	Row     int64         // row, cache: the number of the input row; 0 if it came from several

	Flow    *spec.Flow     // flow
	Step    *spec.StepPlan // step, row, cache, batch
	Workers int            // step: the maximum number of rows at once; 0 if it has no limit of that kind
	Rows    int            // batch: the number of its rows
	Input   []value.Field  // row, cache: the variables that the step reads and that are set

	Model   *model.Info       // model, embedding
	Prices  *catalogue.Prices // model, embedding; nil if they are unknown
	Params  map[string]any    // model: the inference parameters of the document
	Request *model.Request    // model
	Texts   []string          // embedding
	Failed  []model.Failure   // model: why the models before this one were not used, if it is a fallback

	Tool      *tool.Info     // tool
	Arguments map[string]any // tool
	CallID    string         // tool: the model's id of the call; empty if a step calls the tool itself
}

// OperationResult describes how an operation ended. The fields of other kinds are zero.
type OperationResult struct {
	Err   error     // why it failed; nil for success. A flow with failed rows has none
	Ended time.Time // when it ended; the zero time for now

	Read    int64         // flow, step: rows that arrived
	Done    int64         // flow: rows that came out, failed ones included; step, row, cache, batch: rows that the step emitted
	Failed  int64         // flow, step, row, cache, batch: failed rows; for a step also rows that arrived failed
	Input   []value.Field // flow: the inputs of the only row; nil for several
	Session string        // flow: the session of the only row; empty for several
	Output  []value.Field // flow: the outputs of the only result; row, cache: the outputs of the last emitted row

	FirstDelta time.Time       // model: when the first delta came; zero if the answer was not streamed
	Response   *model.Response // model; nil after an error
	Usage      model.Usage     // embedding
	Vectors    int             // embedding: the number of vectors
	Returned   any             // tool

	Turn      *memory.TurnReport // memory: what was committed; nil if nothing was
	Retrieved []int64            // retrieval: the positions of the messages in the session's history
}

type observersKey struct{}

// WithObserver returns a context in which o receives the operations of runs, in
// addition to the observers of ctx.
func WithObserver(ctx context.Context, o Observer) context.Context {
	all := observersOf(ctx)
	return context.WithValue(ctx, observersKey{}, append(all[:len(all):len(all)], o))
}

// WithoutObservers returns a context without the observers of ctx, for runs that only
// check something.
func WithoutObservers(ctx context.Context) context.Context {
	return context.WithValue(ctx, observersKey{}, []Observer(nil))
}

func observersOf(ctx context.Context) []Observer {
	all, _ := ctx.Value(observersKey{}).([]Observer)
	return all
}

// Selective is implemented by observers that ignore some kinds of operations, which are
// then not prepared for them.
type Selective interface {
	Observer
	// Observes reports whether Start does anything for a kind of operations.
	Observes(kind OperationKind) bool
}

// ObservedKind reports whether an observer of ctx receives operations of a kind.
func ObservedKind(ctx context.Context, kind OperationKind) bool {
	for _, o := range observersOf(ctx) {
		if s, ok := o.(Selective); !ok || s.Observes(kind) {
			return true
		}
	}
	return false
}

// Observed reports whether ctx has an observer.
func Observed(ctx context.Context) bool { return len(observersOf(ctx)) > 0 }

// StartSpan reports the start of an operation to the observers of ctx.
func StartSpan(ctx context.Context, op *Operation) Span {
	observers := observersOf(ctx)
	if len(observers) == 1 {
		if s := observers[0].Start(ctx, op); s != nil {
			return s
		}
		return ignored{}
	}
	all := make(spans, 0, len(observers))
	for _, o := range observers {
		if s := o.Start(ctx, op); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// ignored is an operation that no observer receives.
type ignored struct{}

// Context returns ctx.
func (ignored) Context(ctx context.Context) context.Context { return ctx }

// End does nothing.
func (ignored) End(*OperationResult) {}

// Observe reports the start of an operation to the observers of ctx. It returns the
// context of what the operation calls, and a function that reports its end.
func Observe(ctx context.Context, op *Operation) (context.Context, func(*OperationResult)) {
	s := StartSpan(ctx, op)
	return s.Context(ctx), s.End
}

// spans is one operation for several observers.
type spans []Span

// Context returns ctx with the operation as the enclosing one, for each observer.
func (all spans) Context(ctx context.Context) context.Context {
	for _, s := range all {
		ctx = s.Context(ctx)
	}
	return ctx
}

// End reports the end to each observer.
func (all spans) End(r *OperationResult) {
	for _, s := range all {
		s.End(r)
	}
}

// TraceID identifies an operation in traces, in the form of W3C Trace Context.
type TraceID struct {
	Trace string // 32 hexadecimal digits
	Span  string // 16 hexadecimal digits
}

type traceKey struct{}

// WithTraceID returns a context whose enclosing operation has an id. Spans that are
// part of traces do this in their method Context.
func WithTraceID(ctx context.Context, id TraceID) context.Context {
	return context.WithValue(ctx, traceKey{}, &id)
}

// TraceIDOf returns the id of the enclosing operation; nil if there are no traces.
func TraceIDOf(ctx context.Context) *TraceID {
	id, _ := ctx.Value(traceKey{}).(*TraceID)
	return id
}

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

// turnUsage is what the calls of models in a turn have used. It is stored with the turn, so that a run that is repeated after
// the turn was committed has the same figures.
type turnUsage struct {
	mu    sync.Mutex
	calls int
	sum   Event
}

// withTurnUsage returns a context in which the usage of a turn is counted; nil in a run that cannot be repeated, and in one
// with batches, which counts the calls of all passes.
func withTurnUsage(ctx context.Context) (context.Context, *turnUsage) {
	if keys, _ := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys); keys == nil || originOf(ctx) != nil {
		return ctx, nil
	}
	u := &turnUsage{}
	return WithEvents(ctx, u.add, EventUsage), u
}

// add adds the usage of a call.
func (u *turnUsage) add(ev Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.sum.Input, u.sum.Output, u.sum.Cached = u.sum.Input+ev.Input, u.sum.Output+ev.Output, u.sum.Cached+ev.Cached
	u.sum.Cost, u.sum.Saved = u.sum.Cost+ev.Cost, u.sum.Saved+ev.Saved
	u.sum.Estimated = u.sum.Estimated || ev.Estimated
}

// noteFormat has the number of calls, their tokens read, written and cached, cost, saving, and whether tokens are estimates.
const noteFormat = "%d,%d,%d,%d,%g,%g,%t"

// note returns the usage as the note of a turn; empty for nil.
func (u *turnUsage) note() string {
	if u == nil {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprintf(noteFormat, u.calls, u.sum.Input, u.sum.Output, u.sum.Cached, u.sum.Cost, u.sum.Saved, u.sum.Estimated)
}

// reportNoted reports the usage in the note of a turn that an earlier run has committed: one event for each call, the first
// with the sums.
func (s *llmStep) reportNoted(ctx context.Context, row *Row, note string) {
	calls, ev := 0, Event{Kind: EventUsage}
	if _, err := fmt.Sscanf(note, noteFormat, &calls, &ev.Input, &ev.Output, &ev.Cached, &ev.Cost, &ev.Saved, &ev.Estimated); err != nil {
		return // it has none
	}
	for range calls {
		Report(ctx, s.event(row, ev))
		ev = Event{Kind: EventUsage}
	}
}

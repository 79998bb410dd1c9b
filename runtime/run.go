package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// WithProgress updates p during the run.
func WithProgress(p *Progress) RunOption { return func(r *run) { r.progress = p } }

// WithStepTimes measures the time of each step; see StepProgress.
func WithStepTimes() RunOption { return func(r *run) { r.timed = true } }

// WithPartialInput lets reason return, at the end of the run, why the run may miss a part of its input, such as
// steps.PartialInput, so that an IndexUpsert with sync removes nothing; empty if it does not.
func WithPartialInput(reason func() string) RunOption { return func(r *run) { r.partial = reason } }

// WithDeferFailed calls f for each failed row whose place in the output is after an
// incomplete batch. If f returns false, the row is yielded at once, so that the caller
// can end the run. f is called by the goroutine that collects the batch, and not for rows
// that need not wait.
func WithDeferFailed(f func(*Result) bool) RunOption { return func(r *run) { r.mayDefer = f } }

// WithHead lets the run end before the first batch step of the flow, or before the first step if a memory is
// used before and after the batch step. Its results have what the following steps read; see RowCodec.Head.
func WithHead() RunOption { return func(r *run) { r.part = headOf } }

// WithTail lets the run begin where one WithHead ends. Its inputs are the results of
// runs WithHead, in the order of their rows; see HeadInput.
func WithTail() RunOption {
	return func(r *run) { r.part = func(stages []stage) []stage { return stages[len(headOf(stages)):] } }
}

// WithSegment lets the run end after a segment of the flow. The segments are divided by batch steps and have numbers from 0.
func WithSegment(segment int) RunOption {
	return func(r *run) {
		r.part = func(stages []stage) []stage {
			end := slices.IndexFunc(stages, func(s stage) bool { return s.segment > segment })
			if end < 0 {
				return stages
			}
			return stages[:end]
		}
	}
}

// Suspended reports whether a row has no result, because it waits for a batch of a provider.
func Suspended(res *Result) bool { return isSuspended(res.Err) }

// WithEvents calls listen with events of the steps: those of the given kinds, or all
// if no kind is given. listen is called by several goroutines at once and must not
// block. With steps.EventText, models stream their answers.
func WithEvents(listen func(steps.Event), kinds ...steps.EventKind) RunOption {
	return func(r *run) { r.listen, r.kinds = listen, kinds }
}

// WithObserver reports the operations of the run to o, in addition to
// Options.Observer and the observers of the context.
func WithObserver(o steps.Observer) RunOption {
	return func(r *run) { r.observers = append(r.observers, o) }
}

// WithOutage lets rows wait as long as limit for models and stores whose servers are away, instead of failing. The
// warnings of the App state when it begins and ends. A row that has waited for so long fails: see OutageLasts.
func WithOutage(limit time.Duration) RunOption { return func(r *run) { r.outage = limit } }

// WithSharedBudget lets a run be one of several with one budget.
func WithSharedBudget(b SharedBudget) RunOption { return func(r *run) { r.budget = &b } }

// Run processes rows with a flow and yields the results in the order of the rows,
// failed rows included. An error of the sequence ends the run: an unknown flow, a step
// that cannot be built, the end of the context. If rows is nil, a flow without inputs
// runs once. Breaking out of the range stops the run and all that it has started.
func (a *App) Run(ctx context.Context, flowID string, rows iter.Seq[Input], opts ...RunOption) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		err := a.run(ctx, flowID, rows, opts, func(r *Result) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, a.opts.Redactor.Error(err))
		}
	}
}

func (a *App) run(ctx context.Context, flowID string, rows iter.Seq[Input], opts []RunOption, yield func(*Result) bool) error {
	declared, err := a.Flow(flowID)
	if err != nil {
		return err
	}
	r := &run{progress: &Progress{}}
	for _, o := range opts {
		o(r)
	}
	if r.flow, err = a.compile(declared, waves.PassOf(ctx).RowsAtOnce()); err != nil {
		return err
	}
	r.stages = r.flow.stages
	if r.part != nil {
		r.stages = r.part(r.flow.stages)
	}
	if err := r.checkResumable(); err != nil {
		return err
	}
	if err := a.checkTools(ctx, declared); err != nil {
		return err
	}
	r.outputs = r.flow.outputs()
	r.progress.nodes.Store(&r.flow.nodes)
	if r.listen != nil {
		ctx = steps.WithEvents(ctx, r.listen, r.kinds...)
	}
	ctx = remotefs.WithWritten(steps.WithPartialInput(ctx, r.partialReason))
	ctx = timer.WithOutages(ctx, r.outage, a.opts.Warn)
	if r.id != "" {
		ctx = steps.WithRunID(ctx, r.id)
	}
	ctx = a.withAuditFlow(trust.With(WithParts(ctx, a.opts.Parts), a.opts.Policy), declared)
	if rows == nil {
		rows = func(yield func(Input) bool) { yield(Input{}) }
	}
	for _, n := range r.flow.nodes {
		n.timed, n.pass = r.timed, waves.PassOf(ctx)
	}
	ctx = waves.WithPass(ctx, nil) // a run within this one is none of the pass
	for _, o := range append([]steps.Observer{a.opts.Observer}, r.observers...) {
		if o != nil {
			ctx = steps.WithObserver(ctx, o)
		}
	}
	ctx, cancel := withFlowBudget(ctx, declared, r.budget)
	defer cancel()
	return r.execute(ctx, cancel, rows, &resultSink{run: r, yield: yield})
}

// execute takes the rows through the flow. stop ends what the flow has started.
func (r *run) execute(ctx context.Context, stop func(), rows iter.Seq[Input], out *resultSink) (err error) {
	ctx, r.trace = traceFlow(ctx, r.flow)
	defer func() { r.trace.end(err) }()
	out.trace = steps.TraceIDOf(ctx)
	if hasMaxWait(r.stages) {
		return r.runSections(ctx, rows, out)
	}
	first := r.chain(ctx, r.stages, out)
	defer first.stop()
	defer stop()
	return r.feed(ctx, rows, first)
}

// resultSink is the end of the chain: it yields results to the caller.
type resultSink struct {
	run   *run
	yield func(*Result) bool
	spare []Result       // allocated in chunks
	chunk int            // results that were allocated last
	trace *steps.TraceID // of the run; nil if there are no traces
}

func (s *resultSink) push(_ context.Context, row *steps.Row) error {
	if len(s.spare) == 0 {
		s.chunk = nextChunk(s.chunk)
		s.spare = make([]Result, s.chunk)
	}
	res := &s.spare[0]
	s.spare = s.spare[1:]
	s.run.flow.fill(res, row, s.run.outputs)
	res.Trace = s.trace
	s.run.trace.result(row)
	if !row.Replayed {
		s.run.progress.done.Add(1)
		if row.Err != nil {
			s.run.progress.fails.Add(1)
		}
	}
	if !s.yield(res) {
		return errStopped
	}
	return nil
}

func (s *resultSink) finish(context.Context) error { return nil }

func (s *resultSink) stop() {}

// SignIn signs a person in at the server of an MCPTool whose auth is an OAuth2LoginAuth, and
// stores the tokens for runs. show gets the address that the person opens in a browser. It
// returns when the access token expires, the zero time if it does not, and whether it is
// renewed without the person.
func (a *App) SignIn(ctx context.Context, t *spec.MCPTool, show func(address string)) (expires time.Time, renewed bool, err error) {
	tokens, err := mcp.Login(ctx, t, a.toolOptions(a.opts.HTTP), show)
	if err != nil {
		return time.Time{}, false, a.opts.Redactor.Error(withPosition(t, err))
	}
	return tokens.Expiry, tokens.RefreshToken != "", nil
}

// PublicText returns what callers of a server may read about an error of a run. complete reports
// whether that is the whole text. The texts of other errors, for the operator, may have addresses, names
// of credentials, paths and answers of other servers: a text is public only if the type of the error is known here.
func PublicText(err error) (text string, complete bool) {
	failed, ok := err.(*steps.Error) //nolint:errorlint // an *Error further down belongs to another run
	if !ok {
		return publicReason(err)
	}
	path, reason := failed.Path()
	if len(path) == 0 {
		return reason.Error(), true // the row of the caller could not be read
	}
	text, complete = publicReason(reason)
	return fmt.Sprintf("step %s: %s", strings.Join(path, " > "), text), complete
}

// publicReason is PublicText of the reason of a failure.
func publicReason(err error) (text string, complete bool) {
	if text, ok := publicCall(err); ok {
		return text, true
	}
	for _, find := range publicTypes {
		if found := find(err); found != nil {
			return found.Error(), true // without what wraps it, which may name a server
		}
	}
	var ofModel *model.Error
	var ofTool *tool.Error
	var onHost *tool.FailedError
	var store *memory.StoreError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &ofModel) && ofModel.TooLong:
		return fmt.Sprintf("model %s: the request exceeds the context window", ofModel.Model), false
	case errors.As(err, &ofModel) && ofModel.Status != 0:
		return fmt.Sprintf("model %s: %s", ofModel.Model, statusText(ofModel.Status)), false
	case errors.As(err, &ofTool) && ofTool.Status != 0:
		return fmt.Sprintf("tool %s: %s", ofTool.Tool, statusText(ofTool.Status)), false
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "it took too long", false
	case ofModel != nil:
		return fmt.Sprintf("model %s gave no answer", ofModel.Model), false
	case ofTool != nil:
		return fmt.Sprintf("tool %s gave no result", ofTool.Tool), false
	case errors.As(err, &onHost):
		return fmt.Sprintf("tool %s failed", onHost.Tool), false
	case errors.As(err, &store):
		return "the store of the conversation is not available", false
	}
	return "it failed", false
}

// publicCall returns the text of a failed call whose reason is public: mocks of models, bundled
// functions, and what the client answered.
func publicCall(err error) (text string, ok bool) {
	if mock, ok := errors.AsType[*model.Error](err); ok && mock.Endpoint == "" && strings.HasPrefix(mock.Message, mockMark) {
		return mock.Error(), true
	}
	failed, ok := errors.AsType[*tool.FailedError](err)
	if !ok {
		return "", false
	}
	switch failed.Err.(type) { //nolint:errorlint // what wraps the cause is in the text, too
	case *redact.PublicError, *value.Error:
		return failed.Error(), true
	}
	return "", false
}

// mockMark begins the messages of errors that a document or a test declares for a mock model.
const mockMark = "[mock] "

// statusText returns a status with its name.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// publicTypes find the errors of a chain whose texts have nothing but what the caller gave, and
// the names and limits of the document.
var publicTypes = []func(error) error{
	as[*redact.PublicError], as[*TimeoutError], as[*BudgetError], as[*NoSessionError], as[*model.IncompleteError],
	as[*tool.ArgumentError], as[*value.Error], as[*memory.BusyError], as[*memory.InterruptedError], as[*memory.BudgetError],
	as[*memory.EmptyWindowError], as[*memory.TurnSizeError],
}

// as returns the first error of a type in a chain; nil for none.
func as[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}

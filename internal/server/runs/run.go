package runs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Status is the state of a run.
type Status string

// The states. A run that has ended is succeeded if at least one row did not fail, or
// if there were no rows.
const (
	Running   Status = "running"
	Waiting   Status = "waiting" // for the answer to a request
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Suspended Status = "suspended" // it has ended here, and continues in the next process; never stored
)

// Ended reports whether the run has ended, in this process.
func (s Status) Ended() bool {
	return s == Succeeded || s == Failed || s == Cancelled || s == Suspended
}

// suspendedText is the error of a suspended run.
const suspendedText = "the server is shutting down; the run continues when it has started again"

// ErrCancelled is the cause with which a cancelled run ends. Its turns keep what was said.
var ErrCancelled = memory.ErrStopped

// Rows counts the rows of a run.
type Rows struct {
	Read   int64 `json:"read"`
	Done   int64 `json:"done"`   // results, failed ones included
	Failed int64 `json:"failed"` // failed results
}

// State is a snapshot of a run.
type State struct {
	Status  Status
	Updated time.Time
	Rows    Rows
	Error   string     // why the run failed
	Results []*Result  // so far, in the order of the rows
	Pending []*Request // what it waits for
	Batch   *Batch     // of a run with batches that has ended, and of a snapshot; nil for none

	budget *runtime.BudgetError // that the run exceeded, nil for none
}

// Run is one run of a flow. It is safe for concurrent use.
type Run struct {
	ID       string
	Flow     *spec.Flow
	Session  string    // the stored session
	Owner    string    // name of the principal
	Created  time.Time // when the client started it
	detached bool      // it continues without a client
	remote   bool      // a snapshot of a run of another process

	app      *runtime.App
	log      *slog.Logger // nil: nothing is logged
	digest   string       // of the request; see Start
	requests *requests
	record   *record       // nil if it does not survive a restart
	batches  *waves.Shared // makes its calls of models; nil for none
	err      error         // the error that ended it; set before finished is closed
	finished chan struct{}
	watchers atomic.Int64  // clients that follow it
	size     int           // about its size in bytes, set when it has ended
	decided  chan struct{} // closed when it is known whether the run begins
	begun    bool          // it begins; read after decided is closed

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil until the flow runs
	stop   error                   // what ends the run as soon as the flow runs
	events eventLog
	wake   chan struct{} // closed with the next event; nil if no caller waits for one
	state  State
	spent  spent // of a run with batches
	paused int   // events that the last stream had when it paused
}

// State returns a snapshot.
func (r *Run) State() State {
	pending := r.requests.pending()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	s.Pending = pending
	if !s.Status.Ended() {
		s.Status = Running
		if len(pending) > 0 {
			s.Status = Waiting
		}
	}
	return s
}

// Err returns the error that ended the run, after its end; nil if it
// processed all rows. Failed rows are no error of the run.
func (r *Run) Err() error { return r.err }

// Wait waits until the run has ended.
func (r *Run) Wait(ctx context.Context) error {
	select {
	case <-r.finished:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Cancel ends the run with ErrCancelled.
func (r *Run) Cancel() { r.end(ErrCancelled) }

// survives reports whether the run is active and survives a restart.
func (r *Run) survives() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancel != nil && r.record != nil
}

// end ends the run with an error.
func (r *Run) end(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		r.stop = cause
		return
	}
	r.cancel(cause)
}

// begin makes the context of the flow, which end cancels.
func (r *Run) begin(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel, r.begun = cancel, true
	if r.stop != nil {
		cancel(r.stop)
	}
	close(r.decided)
	return ctx, cancel
}

// awaitBegin reports whether a run begins that another call of Begin has registered.
func (r *Run) awaitBegin(ctx context.Context) (bool, error) {
	select {
	case <-r.decided:
		return r.begun, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Next returns events after the first n, some or all, and waits if there are none yet. It
// returns none if the run has ended and has no more events. The error is that of ctx.
// The events must not be modified.
func (r *Run) Next(ctx context.Context, n int) ([]Event, error) {
	events, _, err := r.Follow(ctx, n, nil)
	return events, err
}

// Follow is Next for callers that have more to do: it also returns, without events, when
// tick receives. ended reports that there will be no more events.
func (r *Run) Follow(ctx context.Context, n int, tick <-chan time.Time) (events []Event, ended bool, err error) {
	for {
		r.mu.Lock()
		if events := r.events.after(n); events != nil {
			r.mu.Unlock()
			return events, false, nil
		}
		if r.state.Status.Ended() {
			r.mu.Unlock()
			return nil, true, nil
		}
		if r.wake == nil {
			r.wake = make(chan struct{})
		}
		wake := r.wake
		r.mu.Unlock()
		select {
		case <-wake:
		case <-tick:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// add appends an event, and changes the state with it.
func (r *Run) add(ev Event, change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change != nil {
		change(&r.state)
		r.state.Updated = time.Now().UTC()
	}
	ev.Time = time.Now()
	if ev.Type == RunFinished {
		ev.Text, ev.Error = string(r.state.Status), r.state.Error
	}
	r.events.add(ev)
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// hear receives the events of the engine.
func (r *Run) hear(ev steps.Event) {
	r.count(ev)
	e := Event{Type: types[ev.Kind], Step: ev.Step, Row: ev.Row, Text: ev.Text, Tool: ev.Tool, Call: ev.CallID, Source: ev.Source}
	if ev.Err != nil {
		e.Error = r.public(ev.Err, "row", ev.Row, "step", ev.Step, "call", ev.CallID)
		if ev.Kind == steps.EventToolResult {
			_, e.Denied = errors.AsType[*steps.RejectedError](ev.Err)
			e.Text = e.Error
		}
	}
	if ev.Kind == steps.EventUsage {
		e.Usage = &Usage{Model: ev.Model, Input: ev.Input, Output: ev.Output, Cached: ev.Cached, Estimated: ev.Estimated, Cost: ev.Cost, Finish: ev.Finish}
	}
	r.add(e, nil)
}

// public returns the text of an error for callers. What it leaves out is logged for the operator, by the
// id of the run.
func (r *Run) public(err error, where ...any) string {
	text, complete := runtime.PublicText(err)
	if complete {
		return text
	}
	isLeft := r.batches != nil && errors.Is(err, context.Canceled) // a row does not wait any more
	if r.log != nil && !isLeft {
		r.log.Error("a part of a run failed", append([]any{"run", r.ID, "flow", r.Flow.ID, "error", err.Error()}, where...)...)
	}
	return text + "; the log of the server has the details of run " + r.ID
}

// addResult adds a row that came out of the flow.
func (r *Run) addResult(res *runtime.Result) {
	row := &Result{Row: res.Number}
	if res.Trace != nil {
		row.SpanID, row.TraceID = res.Trace.Span, res.Trace.Trace
	}
	if res.Err != nil {
		var reason error = res.Err
		if path, of := res.Err.Path(); len(path) > 0 {
			row.Step, reason = path[0], of
		}
		row.Error, row.Code, row.exception = r.public(reason, "row", res.Number, "step", row.Step), runtime.ErrorCode(res.Err), res.Err
	} else {
		row.Outputs = res.AppendOutputs(make([]any, 0, len(r.Flow.Outputs)))
	}
	r.add(Event{Type: RowFinished, Row: row.Row, Step: row.Step, Error: row.Error, Result: row}, func(s *State) {
		s.Results = append(s.Results, row)
		s.Rows.Done++
		if row.Error != "" {
			s.Rows.Failed++
		}
	})
}

// finish ends the run with the error of the engine.
func (r *Run) finish(err error) {
	r.err = err
	r.mu.Lock()
	r.cancel = nil // it would keep the request
	r.mu.Unlock()
	r.add(Event{Type: RunFinished}, func(s *State) { s.end(err, func(err error) string { return r.public(err) }) })
	close(r.finished)
}

// end sets the status of a run that the engine ended with err, whose text public returns.
func (s *State) end(err error, public func(error) string) {
	s.Status = Succeeded
	_ = errors.As(err, &s.budget)
	switch {
	case errors.Is(err, ErrCancelled):
		s.Status, s.Error = Cancelled, err.Error()
	case errors.Is(err, memory.ErrSuspended):
		s.Status, s.Error = Suspended, suspendedText
	case err != nil:
		s.Status, s.Error = Failed, public(err)
	case s.Rows.Failed > 0 && s.Rows.Failed == s.Rows.Done:
		s.Status = Failed
	}
}

// Settle waits until the run has ended, or waits for its client and has stored that. The
// error is that of ctx.
func (r *Run) Settle(ctx context.Context) (waiting bool, err error) {
	open := 0
	for n := 0; ; {
		select {
		case <-r.finished:
			return false, nil
		default:
		}
		events, err := r.Next(ctx, n)
		if err != nil {
			return false, err
		}
		n += len(events)
		for i := range events {
			open += events[i].opens()
		}
		if (open > 0 || r.remote) && r.State().Status == Waiting {
			return true, nil
		}
	}
}

// Remote reports whether this is a snapshot of what another process has stored: it has no
// events of steps and does not change.
func (r *Run) Remote() bool { return r.remote }

// Pause records that a stream ended after the first n events because the run waits.
func (r *Run) Pause(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = n
}

// Paused returns behind how many events a stream continues that ended because the run
// waits: those of the last such stream, or all so far if there was none.
func (r *Run) Paused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused == 0 {
		return r.events.n
	}
	return r.paused
}

// Count returns the number of events so far.
func (r *Run) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events.n
}

// Events returns the first n events, fewer if there are fewer.
func (r *Run) Events(n int) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events.first(n)
}

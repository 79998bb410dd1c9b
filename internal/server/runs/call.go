package runs

import (
	"context"
	"crypto/rand"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Call is a run of an Engine for one request of a protocol that has no runs and sends requests to its client itself.
type Call struct {
	App     *runtime.App
	Flow    string                  // the flow's id
	Rows    iter.Seq[runtime.Input] // of one session
	Approve tool.Approver           // answers approvals
	Client  tool.ClientHandler      // answers the calls of client tools
}

// Run runs the flow and yields the results as App.Run does. Events are reported to the listeners of ctx.
func (c *Call) Run(ctx context.Context, e Engine) iter.Seq2[*runtime.Result, error] {
	return func(yield func(*runtime.Result, error) bool) {
		flow, err := c.App.Flow(c.Flow)
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stopped := false
		job := &Job{Created: time.Now().UTC(), Ask: c.ask, Event: func(ev steps.Event) { steps.Report(ctx, ev) }, Result: func(res *runtime.Result) {
			if !stopped && !yield(res, nil) {
				stopped = true
				cancel(ErrCancelled)
			}
		}}
		job.Start = Start{App: c.App, Flow: flow, Owner: memory.Actor(ctx), Events: steps.Wanted(ctx, steps.EventText), ID: "call_" + rand.Text()}
		for row := range c.Rows {
			job.Session = row.Session
			job.Rows = append(job.Rows, row.Values)
		}
		release, err := e.Run(ctx, job)
		release()
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// ask is the Ask of the run.
func (c *Call) ask(ctx context.Context, kind RequestKind, call tool.Request) (*Answer, error) {
	if kind == Approval {
		a := &Answer{}
		call.Decided = func(name string) { a.By = name }
		yes, reason, err := c.Approve(ctx, call)
		a.Approved, a.Reason = &yes, reason
		return a, err
	}
	result, err := c.Client(ctx, call)
	if err != nil {
		return &Answer{Error: err.Error()}, nil //nolint:nilerr // for the model, as if the tool were called here
	}
	return &Answer{Result: value.JSON(value.FromGo(result))}, nil
}

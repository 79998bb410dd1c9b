package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
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

// CallIDs are the ids of calls of tools that have none: those of a step that calls a tool itself. The
// zero value has none. It is for one goroutine.
type CallIDs struct {
	named map[calledTool]string
}

// calledTool is what an event has of a call without an id.
type calledTool struct {
	step, tool string
	row        int64
}

// Of returns the id of the call of an event. If the event is the begin of a call without an id,
// name makes one.
func (c *CallIDs) Of(ev *Event, begins bool, name func() string) string {
	if ev.Call != "" {
		return ev.Call
	}
	called := calledTool{ev.Step, ev.Tool, ev.Row}
	if begins {
		if c.named == nil {
			c.named = map[calledTool]string{}
		}
		c.named[called] = name()
	}
	return c.named[called]
}

// callerTool is a tool that the client of a run offers and runs itself.
type callerTool struct {
	ask  Ask
	info tool.Info
}

// errNoResult ends a run whose client has not answered.
var errNoResult = &redact.PublicError{Err: errors.New("the client did not send the results of its tools in time")}

// asker returns the Ask of the run, which ends if its client does not send the result of a tool
// that it offers in time.
func (r *Run) asker(offered []CallerTool, wait time.Duration) Ask {
	return func(ctx context.Context, kind RequestKind, call tool.Request) (*Answer, error) {
		isOffered := func(t CallerTool) bool { return t.Name == call.Tool.ID }
		if kind == ClientTool && slices.ContainsFunc(offered, isOffered) {
			defer time.AfterFunc(wait, func() { r.end(errNoResult) }).Stop()
		}
		return r.ask(ctx, kind, call)
	}
}

// callerTools returns the tools that the client of a run offers.
func callerTools(declared []CallerTool, ask Ask) []tool.RawTool {
	tools := make([]tool.RawTool, len(declared))
	for i, t := range declared {
		parameters := json.RawMessage(t.Parameters)
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
		}
		tools[i] = &callerTool{ask: ask, info: tool.Info{ID: t.Name, Name: t.Name, Description: t.Description, Parameters: parameters}}
	}
	return tools
}

// Info describes the tool.
func (t *callerTool) Info() tool.Info { return t.info }

// Call opens a request to the client.
func (t *callerTool) Call(ctx context.Context, args map[string]any) (any, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, &tool.ArgumentError{Tool: t.info.ID, Problem: err.Error()}
	}
	return t.CallRaw(ctx, string(raw))
}

// CallRaw opens a request to the client.
func (t *callerTool) CallRaw(ctx context.Context, args string) (any, error) {
	if args == "" {
		args = "{}"
	}
	if !json.Valid([]byte(args)) {
		return nil, fmt.Errorf("the arguments are not valid JSON")
	}
	return t.ask.RunClientTool(ctx, tool.Request{Tool: t.info, Args: []byte(args), Caller: tool.CallerOf(ctx)})
}

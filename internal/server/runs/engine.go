package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Engine runs the rows of runs in place of the App of this process. It is safe for concurrent use.
type Engine interface {
	// Run runs the rows of a job and returns the error that ended it; failed rows are no error.
	// If ctx ends because of memory.ErrSuspended, the run goes on without this process, and Run
	// with an equal job follows it; otherwise the run ends with ctx. release is called when the
	// end of the run is stored.
	Run(ctx context.Context, job *Job) (release func(), err error)
}

// Job is a run of an Engine.
type Job struct {
	Start                         // the request; its ID is set
	Created time.Time             // when the client started it: with the ID it identifies the run
	Event   func(steps.Event)     // takes the events that EventKinds returns, if Start.Events is set
	Result  func(*runtime.Result) // takes the results, in the order of the rows
	Ask     Ask                   // sends requests to the client
}

// delegate lets an engine run the rows.
func (r *Run) delegate(ctx context.Context, e Engine, s *Start, ask Ask) (release func(), err error) {
	defer func() {
		if p := recover(); p != nil {
			release, err = func() {}, errInternal
		}
	}()
	job := &Job{Start: *s, Created: r.Created, Event: r.hear, Result: r.addResult, Ask: ask}
	job.ID = r.ID
	r.mu.Lock()
	r.state.Rows.Read = int64(len(s.Rows))
	r.mu.Unlock()
	if release, err = e.Run(ctx, job); err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return release, err
}

// Context returns the context in which the steps of a run have what its client gives them.
func (s *Start) Context(ctx context.Context, ask Ask) context.Context {
	if s.Owner != "" { // also of a run that another process has accepted
		ctx = memory.WithActor(ctx, s.Owner)
	}
	if len(s.Tools) > 0 {
		ctx = tool.WithCallerTools(ctx, callerTools(s.Tools, ask))
	}
	if s.Instructions != nil {
		ctx = steps.WithInstructions(ctx, s.Instructions)
	}
	if s.Stateless || s.History != nil {
		ctx = steps.WithHistory(ctx, s.History)
	}
	return ctx
}

// EncodeStart returns a request without its rows as bytes.
func EncodeStart(s *Start) ([]byte, error) {
	stored := newStoredRequest(s)
	stored.Rows = nil
	return json.Marshal(stored)
}

// DecodeStart returns the request that EncodeStart has encoded, for the same document.
func DecodeStart(app *runtime.App, data []byte) (*Start, error) {
	var req storedRequest
	if err := json.Unmarshal(data, &req); err != nil {
		return nil, fmt.Errorf("the request is damaged: %w", err)
	}
	flow, err := app.Flow(req.Flow)
	if err != nil {
		return nil, err
	}
	s := req.start(app, flow, nil)
	return &s, nil
}

package temporal

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// asker answers for the caller of the row of a chunk: with the answers that the workflow has, or
// by ending the chunk, so that no worker is occupied while a person decides. It is safe for
// concurrent use.
type asker struct {
	worker  *chunkRunner
	answers map[string]durable.Answer // by the keys of the requests
	suspend context.CancelCauseFunc
	publish func([]streamedRequest) // shows requests to the client; nil if the workflow does

	mu     sync.Mutex
	opened []durable.Request // without an answer
}

// handlers returns the handlers of the run of a chunk. What the worker answers itself by its
// flags is no request.
func (q *asker) handlers() tool.Handlers {
	return tool.Handlers{Approve: q.approve, Client: func(id string) tool.ClientHandler {
		if !q.worker.isClientTool(id) || slices.Contains(q.worker.answered, id) {
			return nil
		}
		return q.result
	}}
}

// isClientTool reports whether a tool of the document has no other way to be called than by
// the caller.
func (w *chunkRunner) isClientTool(id string) bool {
	return slices.ContainsFunc(w.app.Spec().AllTools(), func(t spec.Tool) bool {
		_, ok := t.(*spec.ClientTool)
		return ok && t.EntityID() == id
	})
}

// approve is the tool.Approver.
func (q *asker) approve(ctx context.Context, call tool.Request) (yes bool, reason string, err error) {
	if call.Tool.IsAmong(q.worker.approved) {
		return true, "", nil
	}
	a, err := q.ask(ctx, durable.Approval, call)
	if call.Decided != nil {
		call.Decided(a.By)
	}
	return a.Approved, a.Reason, err
}

// result is the tool.ClientHandler.
func (q *asker) result(ctx context.Context, call tool.Request) (any, error) {
	return runs.Ask(q.askClient).RunClientTool(ctx, call)
}

// askClient is the runs.Ask of the tools that the client of a server offers.
func (q *asker) askClient(ctx context.Context, kind runs.RequestKind, call tool.Request) (*runs.Answer, error) {
	a, err := q.ask(ctx, durable.RequestKind(kind), call)
	return &runs.Answer{Approved: &a.Approved, Reason: a.Reason, Result: a.Result, Error: a.Error}, err
}

// asked is a request with what is shown of it.
type asked struct {
	durable.Request
	shown streamedRequest
}

// ask returns the answer to a request. Without one, it ends the chunk when no other call of the same
// answer of the model is running.
func (q *asker) ask(ctx context.Context, kind durable.RequestKind, call tool.Request) (durable.Answer, error) {
	if len(call.Args) > maxRequest {
		return durable.Answer{}, fmt.Errorf("the arguments have %d bytes, but a call that waits for an answer may have %d",
			len(call.Args), maxRequest)
	}
	key := string(kind) + "-" + call.Caller.Key
	if given, ok := q.answers[key]; ok {
		return given, nil
	}
	req := durable.Request{Kind: kind, Row: call.Caller.Row, Session: call.Caller.Session, Step: call.Caller.Step, Tool: call.Tool.ID, Arguments: call.Args, Key: key}
	if kind == durable.ClientTool && call.Outputs != nil {
		req.Schema = tool.Schema(call.Outputs)
	}
	t := call.Tool
	shown := streamedRequest{Kind: kind, Tool: streamedTool{ID: t.ID, Set: t.Set, Name: t.Name, Description: t.Description}, Args: call.Args, Caller: call.Caller, By: call.By}
	tool.Announce(ctx, asked{req, shown}, q.open)
	<-ctx.Done()
	return durable.Answer{}, context.Cause(ctx)
}

// open opens the requests of a round and ends the chunk.
func (q *asker) open(round []any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var shown []streamedRequest
	for _, r := range round {
		q.opened = append(q.opened, r.(asked).Request)
		shown = append(shown, r.(asked).shown)
	}
	if q.publish != nil {
		q.publish(shown)
	}
	q.suspend(memory.ErrSuspended)
}

// requests returns what the chunk waits for. Requests that are not small together are a blob, and the workflow has no
// schemas, or also no arguments.
func (q *asker) requests(ctx context.Context, t *task) ([]keyedRequest, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	shown, schemas, keys := 0, 0, ""
	for i := range q.opened {
		r := &q.opened[i]
		shown, schemas, keys = shown+len(r.Arguments)+len(r.Session), schemas+len(r.Schema), keys+r.Key+" "
	}
	var all []keyedRequest
	if shown+schemas <= maxKept {
		for _, r := range q.opened {
			all = append(all, keyedRequest{Request: r, ID: r.Key})
		}
		return all, nil
	}
	name := askedName(t.folder(), t.Partition, t.Number, keys)
	for _, r := range q.opened {
		short := r
		if short.Schema = nil; shown > maxKept {
			short.Arguments, short.InBlobs = nil, true
		}
		if len(r.Session) > maxOwnerSize {
			short.Session = ""
		}
		all = append(all, keyedRequest{Request: short, ID: r.Key, Blob: name})
	}
	return all, q.worker.blobs.write(ctx, name, q.opened)
}

// readAnswers completes the answers of a task by those that are blobs.
func (w *chunkRunner) readAnswers(ctx context.Context, t *task) error {
	for id, name := range t.Kept {
		var a durable.Answer
		if err := w.blobs.read(ctx, name, &a); err != nil {
			return err
		}
		t.Answers[id] = a
	}
	return nil
}

// keep stores an answer as a blob. It is a local activity of the workflow.
func (w *chunkRunner) keep(ctx context.Context, folder string, a givenAnswer) (givenAnswer, error) {
	a.Blob = answerName(folder)
	full := a.Answer
	a.Answer = durable.Answer{Number: a.Number}
	return a, w.blobs.write(ctx, a.Blob, full)
}

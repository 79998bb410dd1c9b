//go:build temporal

package durable

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// asker answers for the caller of the row of a chunk: with the answers that the workflow has, or
// by ending the chunk, so that no worker is occupied while a person decides. It is safe for
// concurrent use.
type asker struct {
	worker  *chunkRunner
	answers map[string]Answer // by the keys of the requests
	suspend context.CancelCauseFunc

	mu     sync.Mutex
	opened []Request // without an answer
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
func (q *asker) approve(_ context.Context, call tool.Request) (yes bool, reason string, err error) {
	if slices.Contains(q.worker.approved, call.Tool.ID) || slices.Contains(q.worker.approved, call.Tool.Set) {
		return true, "", nil
	}
	a, err := q.ask(Approval, call)
	return a.Approved, a.Reason, err
}

// result is the tool.ClientHandler.
func (q *asker) result(_ context.Context, call tool.Request) (any, error) {
	a, err := q.ask(ClientTool, call)
	if err != nil {
		return nil, err
	}
	return value.Parse(string(a.Result))
}

// ask returns the answer to a request. Without one, it ends the chunk.
func (q *asker) ask(kind RequestKind, call tool.Request) (Answer, error) {
	if len(call.Args) > maxRequest {
		return Answer{}, fmt.Errorf("the arguments have %d bytes, but a call that waits for an answer may have %d", len(call.Args), maxRequest)
	}
	key := string(kind) + "-" + call.Caller.Key
	q.mu.Lock()
	defer q.mu.Unlock()
	if given, ok := q.answers[key]; ok {
		return given, nil
	}
	req := Request{Kind: kind, Row: call.Caller.Row, Session: call.Caller.Session, Step: call.Caller.Step, Tool: call.Tool.ID, Arguments: call.Args, Key: key}
	if kind == ClientTool && call.Outputs != nil {
		req.Schema = tool.Schema(call.Outputs)
	}
	q.opened = append(q.opened, req)
	q.suspend(memory.ErrSuspended)
	return Answer{}, memory.ErrSuspended
}

// requests returns what the chunk waits for.
func (q *asker) requests() []keyedRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []keyedRequest
	for _, r := range q.opened {
		all = append(all, keyedRequest{Request: r, ID: r.Key})
	}
	return all
}

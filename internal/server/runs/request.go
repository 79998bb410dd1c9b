package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// RequestKind is what a run requests from its client.
type RequestKind string

// The kinds of requests.
const (
	Approval   RequestKind = "approval"    // whether a tool may be called
	ClientTool RequestKind = "client_tool" // the result of a tool that the client runs
)

// Request is what a run waits for: the client must answer it.
type Request struct {
	ID          string          `json:"id"`   // unique within the run, and the same when the run is repeated
	Kind        RequestKind     `json:"kind"` // what is asked for
	Tool        string          `json:"tool"` // the tool's name
	ToolID      string          `json:"tool_id,omitempty"`
	Description string          `json:"description,omitempty"`
	Arguments   json.RawMessage `json:"arguments"`        // the arguments of the call, an object
	Schema      json.RawMessage `json:"schema,omitempty"` // client_tool: JSON schema of the result
	Step        string          `json:"step,omitempty"`
	Row         int64           `json:"row,omitempty"`
	Call        string          `json:"call,omitempty"`    // the id of the tool call; empty where a step calls the tool
	By          []string        `json:"by,omitempty"`      // approval: who may decide, as spec.Approval.By; empty: the caller
	Decider     string          `json:"decider,omitempty"` // request.answered: who has answered; empty without authentication
}

// AsksCaller reports whether the client of the run is asked. Approvals that only a role decides are asked
// of the people who have it.
func (r *Request) AsksCaller() bool { return r.Kind != Approval || spec.MayDecide(r.By, nil, true) }

// NotAsked returns the problem of a run that waits, but asks its client for nothing; nil if it asks.
func NotAsked(run string, pending []*Request) *problem.Problem {
	if len(pending) == 0 || slices.ContainsFunc(pending, (*Request).AsksCaller) {
		return nil
	}
	r := pending[0]
	return problem.New(http.StatusUnprocessableEntity, "approval_required", "the call of tool %s needs the approval of %s: run %s waits for it",
		r.Tool, textfmt.List(r.By), run)
}

// Answer is a client's answer to a Request.
type Answer struct {
	ID       string          `json:"id"`
	Approved *bool           `json:"approved,omitempty"` // approval
	Reason   string          `json:"reason,omitempty"`   // approval: why it was rejected, for the model
	Result   json.RawMessage `json:"result,omitempty"`   // client_tool
	Error    string          `json:"error,omitempty"`    // client_tool: why the tool failed
	By       string          `json:"by,omitempty"`       // who has answered; set by the Manager
}

// Errors of answers.
var (
	ErrNoRequest = errors.New("the run has no open request with this id")
	ErrAnswered  = errors.New("the request was answered before")
)

// Fits returns an error if the answer does not fit the kind of the request.
func (a *Answer) Fits(kind RequestKind) error {
	switch {
	case kind == Approval && a.Approved == nil:
		return errors.New(`an approval needs "approved": true or false`)
	case kind == ClientTool && a.Result == nil && a.Error == "":
		return errors.New(`the result of a tool needs "result" or "error"`)
	}
	return nil
}

// requests are the requests of a run and the answers to them.
type requests struct {
	mu      sync.Mutex
	open    map[string]*openRequest
	order   []string            // ids of the open requests
	known   map[string]*Request // those of a continued run that it has not repeated yet
	answers map[string]*Answer  // given, by the id of the request
	counts  map[string]int      // how often equal requests were made
}

type openRequest struct {
	*Request
	opened   chan struct{} // closed when the event that it opened has been added
	answered chan struct{} // closed with the answer
	dropped  bool          // no caller waits for the answer any more
	early    bool          // the answer was given before it opened
}

func newRequests() *requests {
	return &requests{open: map[string]*openRequest{}, known: map[string]*Request{}, answers: map[string]*Answer{}, counts: map[string]int{}}
}

// id returns the id of a request: that of the same request in a repeated run.
func (q *requests) id(kind RequestKind, r *tool.Request) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %d %q %q", kind, r.Tool.ID, r.Caller.Step, r.Caller.Row, r.Caller.CallID, r.Args)
	digest := hex.EncodeToString(h.Sum(nil)[:8])
	n := q.counts[digest]
	q.counts[digest] = n + 1
	return fmt.Sprintf("%s-%d", digest, n)
}

// ask waits for the answer to a request.
func (r *Run) ask(ctx context.Context, kind RequestKind, call tool.Request) (*Answer, error) {
	q := r.requests
	q.mu.Lock()
	id := q.id(kind, &call)
	if given := q.answers[id]; given != nil {
		q.mu.Unlock()
		r.addEarly(newRequest(id, kind, call), given.By)
		return given, nil
	}
	o := &openRequest{Request: newRequest(id, kind, call), opened: make(chan struct{}), answered: make(chan struct{})}
	q.mu.Unlock()
	tool.Announce(ctx, o, func(all []any) { r.wait(ctx, q.add(all)) })
	select {
	case <-o.answered:
		q.mu.Lock()
		given := q.answers[id]
		q.mu.Unlock()
		if o.early {
			r.addEarly(o.Request, given.By)
		}
		return given, nil
	case <-ctx.Done():
		q.drop(o)
		return nil, context.Cause(ctx)
	}
}

// addEarly adds the events of a request that was answered before it opened.
func (r *Run) addEarly(req *Request, decider string) {
	r.add(requestEvent(RequestOpened, req), nil)
	r.add(requestEvent(RequestAnswered, req.answeredBy(decider)), nil)
}

// answeredBy returns the request with who has answered it.
func (r Request) answeredBy(name string) *Request {
	r.Decider = name
	return &r
}

func newRequest(id string, kind RequestKind, call tool.Request) *Request {
	req := &Request{ID: id, Kind: kind, Tool: call.Tool.Name, ToolID: call.Tool.ID, Description: call.Tool.Description,
		Arguments: call.Args, Step: call.Caller.Step, Row: call.Caller.Row, Call: call.Caller.CallID, By: call.By}
	if kind == ClientTool && call.Outputs != nil {
		req.Schema = tool.Schema(call.Outputs)
	}
	return req
}

// add opens the requests of a round together, and returns them.
func (q *requests) add(round []any) []*openRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	var added []*openRequest
	for _, x := range round {
		o := x.(*openRequest)
		delete(q.known, o.ID)
		switch {
		case o.dropped:
		case q.answers[o.ID] != nil:
			o.early = true
			close(o.answered)
		default:
			q.open[o.ID] = o
			q.order = append(q.order, o.ID)
			added = append(added, o)
		}
	}
	return added
}

// drop removes a request.
func (q *requests) drop(o *openRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o.dropped = true
	delete(q.open, o.ID)
	q.order = without(q.order, o.ID)
}

func without(ids []string, id string) []string {
	var rest []string
	for _, other := range ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

// pending returns the open requests, the oldest first.
func (q *requests) pending() []*Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := make([]*Request, 0, len(q.order))
	for _, id := range q.order {
		list = append(list, q.open[id].Request)
	}
	return list
}

// find returns the open or known request with an id; the caller holds the lock.
func (q *requests) find(id string) (*openRequest, error) {
	switch open, known := q.open[id], q.known[id]; {
	case q.answers[id] != nil:
		return nil, ErrAnswered
	case open != nil:
		return open, nil
	case known != nil:
		return &openRequest{Request: known}, nil
	}
	return nil, ErrNoRequest
}

// answer stores the answer to a request, and returns the open request, whose caller still
// waits. It returns none for a request that the run has not repeated yet.
func (q *requests) answer(a *Answer) (*openRequest, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o, err := q.find(a.ID)
	if err == nil {
		err = a.Fits(o.Kind)
	}
	if err != nil {
		return nil, err
	}
	q.answers[a.ID] = a
	if q.open[a.ID] == nil {
		delete(q.known, a.ID)
		return nil, nil
	}
	delete(q.open, a.ID)
	q.order = without(q.order, a.ID)
	return o, nil
}

// Ask returns the answer of the client of a run to a request.
type Ask func(ctx context.Context, kind RequestKind, call tool.Request) (*Answer, error)

// approve is the tool.Approver of a run.
func (ask Ask) approve(ctx context.Context, call tool.Request) (yes bool, reason string, err error) {
	a, err := ask(ctx, Approval, call)
	if err != nil {
		return false, "", err
	}
	if call.Decided != nil {
		call.Decided(a.By)
	}
	return a.Approved != nil && *a.Approved, a.Reason, nil
}

// RunClientTool is the tool.ClientHandler of a run.
func (ask Ask) RunClientTool(ctx context.Context, call tool.Request) (any, error) {
	a, err := ask(ctx, ClientTool, call)
	switch {
	case err != nil:
		return nil, err
	case a.Error != "":
		return nil, &redact.PublicError{Err: errors.New(a.Error)}
	}
	return value.Parse(string(a.Result))
}

package durable

import (
	"encoding/json"
	"fmt"
)

// RequestKind is what a row waits for.
type RequestKind string

// The kinds of requests.
const (
	Approval   RequestKind = "approval"    // whether a tool may be called
	ClientTool RequestKind = "client_tool" // the result of a client tool
)

// Request is what a row of a run waits for.
type Request struct {
	Number    int             `json:"number"` // unique in the run, counted from 1
	Kind      RequestKind     `json:"kind"`
	Row       int64           `json:"row"`
	Session   string          `json:"session,omitempty"`
	Step      string          `json:"step"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Schema    json.RawMessage `json:"schema,omitempty"` // of the result of a client tool
	Key       string          `json:"-"`                // the same when the row is repeated
}

// Answer answers a Request.
type Answer struct {
	Number   int             `json:"number"` // of the request
	Approved bool            `json:"approved,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of a rejection, for the model
	Result   json.RawMessage `json:"result,omitempty"` // of a client tool
}

// maxRequest is the size in bytes of the arguments of a request, and of a result. They are parts
// of the history of the workflow.
const maxRequest = 8 << 10

// fits returns an error if the answer does not answer the request.
func (a *Answer) fits(r *Request) error {
	switch {
	case r.Kind == Approval && a.Result != nil:
		return fmt.Errorf("request %d is an approval: expected yes, no or a reason", r.Number)
	case r.Kind == ClientTool && a.Result == nil:
		return fmt.Errorf("request %d needs the result of tool %s, as JSON", r.Number, r.Tool)
	case len(a.Result) > maxRequest:
		return fmt.Errorf("the result for request %d has %d bytes, more than %d: run the tool on the workers (--client-tool)", r.Number, len(a.Result), maxRequest)
	}
	return nil
}

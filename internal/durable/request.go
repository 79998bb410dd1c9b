package durable

import (
	"encoding/json"
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
	Schema    json.RawMessage `json:"schema,omitempty"`   // of the result of a client tool
	InBlobs   bool            `json:"in_blobs,omitempty"` // the arguments are in the blobs of the run, which were not read
	Key       string          `json:"-"`                  // the same when the row is repeated
}

// Answer answers a Request.
type Answer struct {
	Number   int             `json:"number"` // of the request
	Approved bool            `json:"approved,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of a rejection, for the model
	Result   json.RawMessage `json:"result,omitempty"` // of a client tool
	Error    string          `json:"error,omitempty"`  // why a client tool failed, for the model
	By       string          `json:"by,omitempty"`     // who has answered, if it is a caller of a server
}

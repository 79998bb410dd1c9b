// Package tool runs the tools of a document: functions that agents and
// InvokeTool steps call, each behind one small interface.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/spec"
)

// Tool is a function that can be called. Implementations are safe for concurrent use.
type Tool interface {
	// Info tells what the tool is; it calls nothing.
	Info() Info
	// Call runs the tool. args holds values by the names of Info().Inputs:
	// JSON values, or anything that encoding/json can write. The result is a
	// JSON value with numbers as json.Number, text, []byte for a body that is
	// no text, or nil; a tool that runs here may answer with run-time values of
	// package value. Errors are an *Error for what the other side did, a
	// *FailedError for what went wrong here, an *ArgumentError for wrong
	// arguments, the context's error when it ended.
	Call(ctx context.Context, args map[string]any) (any, error)
}

// Set is a declared tool that stands for many, such as a server's. It is a Tool
// itself only so that it can stand where one does: calling it is an error.
type Set interface {
	Tool
	// Tools are the tools that it stands for. They may have to be asked for.
	Tools(ctx context.Context) ([]Tool, error)
}

// Preflighter is a tool that can tell before the first row that no call of it will
// succeed: its module does not exist, say.
type Preflighter interface {
	Tool
	// Check is nil where calls may succeed. It may start what calls need.
	Check(ctx context.Context) error
}

// Info describes a tool.
type Info struct {
	ID          string           // the id in the document; a tool of a Set has the Set's, a slash and its own name
	Set         string           // the id of the Set that it belongs to, mostly empty
	Name        string           // what a model calls it
	Description string           // what it does and when to use it
	Parameters  json.RawMessage  // JSON schema of the arguments, an object
	Inputs      []*spec.Variable // the arguments that a caller may give, in document order
}

// Options says how tools reach the world. The zero value will do.
type Options struct {
	// HTTP calls API tools; nil means a client with sane timeouts. Addresses are
	// checked after name resolution where its Transport is nil or an
	// *http.Transport; any other Transport has to do so itself.
	HTTP *http.Client
	// Secret resolves references to a secret manager; nil where there is none.
	Secret func(spec.Secret) (string, error)
}

// Describe makes the Info of a tool whose arguments are inputs.
func Describe(base *spec.ToolBase, inputs []*spec.Variable) Info {
	return Info{ID: base.ID, Name: base.Name, Description: base.Description, Inputs: inputs, Parameters: Schema(inputs)}
}

// ArgumentError says that a call's arguments do not fit the tool.
type ArgumentError struct {
	Tool     string // the tool's id
	Argument string // the argument's name
	Problem  string // what is wrong with it
}

// Error names the tool, the argument and the problem.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("tool %s: argument %s: %s", e.Tool, e.Argument, e.Problem)
}

// FailedError is what a tool that runs on this machine did instead of answering:
// a function that raised, a program that ended badly, a person who gave no answer.
type FailedError struct {
	Tool    string // the tool's id
	Message string // what happened; one line
	Where   string // the line of the tool's own code, as file:line; empty where there is none
	Err     error  // what lies below, such as the end of a context; may be nil
}

// Error is one line: which tool, what happened, where.
func (e *FailedError) Error() string {
	s := fmt.Sprintf("tool %s: %s", e.Tool, e.Message)
	if e.Where != "" {
		s += " (" + e.Where + ")"
	}
	return s
}

// Unwrap is what lies below.
func (e *FailedError) Unwrap() error { return e.Err }

// Error is what the other side did instead of answering.
type Error struct {
	Tool       string        // the tool's id
	Method     string        // the HTTP method
	URL        string        // what was called, without user, password and query
	Status     int           // the HTTP status; 0 where there was no answer
	Message    string        // what happened, with a piece of the answer's body; one line
	Attempts   int           // how often the call was tried
	RetryAfter time.Duration // how long the server asks to wait
	Temporary  bool          // a later call may succeed
	Err        error         // what lies below: a network error
}

// Error is one line: which tool, which call, what happened, how often.
func (e *Error) Error() string {
	s := fmt.Sprintf("tool %s: %s %s: %s", e.Tool, e.Method, e.URL, e.Message)
	if e.Status != 0 {
		s = fmt.Sprintf("tool %s: %s %s: HTTP %d: %s", e.Tool, e.Method, e.URL, e.Status, e.Message)
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", tried %d times", e.Attempts)
	}
	return s
}

// Unwrap is the network's error, where there is one.
func (e *Error) Unwrap() error { return e.Err }

package tool

import (
	"context"

	"github.com/qtype-dev/qtype/spec"
)

// Caller identifies the caller of a tool.
type Caller struct {
	Step    string // the step's id
	Session string // the row's session
	Row     int64  // the row's number, counted from 1
	CallID  string // the model's id of the call; empty where a step calls the tool itself
	Key     string // of the call in the log of a run that can be repeated (steps.CallLog); empty without a log

	Repeat string // identifies the call among all, and is the same when the run repeats it; empty without a log

	AuditCall string // identifies the call in an audit log; may be empty
}

type callerKey struct{}

// WithCaller returns a context with the caller of the tools that are called under it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller; the zero Caller if the context has none.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Request is a call that the program running the application handles: the call of a
// ClientTool, or a call that requires approval.
type Request struct {
	Tool    Info             // the tool
	Outputs []*spec.Variable // what the result should contain
	Args    []byte           // the arguments, a JSON object in the order of the tool's inputs
	Caller  Caller           // the caller

	By      []string          // of an approval: who may decide, as spec.Approval.By; nil: the caller of the run
	Decided func(name string) // of an approval, may be nil: reports who has decided, if an Approver knows it
}

// ClientHandler runs a call of a client tool. It returns an object with the tool's
// outputs, or the value of the only output; anything that encoding/json can encode. It
// may be called by several goroutines at the same time, and must stop when ctx ends.
type ClientHandler func(context.Context, Request) (any, error)

// Approver decides whether a tool may be called. The reason of a rejection, which may be
// empty, is sent to the model.
type Approver func(context.Context, Request) (yes bool, reason string, err error)

// ConvertArgs validates the arguments of a call and converts them to the types of the
// tool's inputs.
func ConvertArgs(info Info, args map[string]any, convert func(*spec.Variable, any) (any, error)) (map[string]any, error) {
	given, err := info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	for _, in := range info.Inputs {
		raw, ok := given[in.ID]
		if !ok {
			continue
		}
		v, err := convert(in, raw)
		if err != nil {
			return nil, &ArgumentError{Tool: info.ID, Argument: in.ID, Problem: err.Error()}
		}
		given[in.ID] = v
	}
	return given, nil
}

package tool

import (
	"context"

	"github.com/qtype-dev/qtype/spec"
)

// Caller tells who calls a tool.
type Caller struct {
	Step    string // the step's id
	Session string // the row's session
	Row     int64  // the row's number, counted from 1
	CallID  string // the model's id for the call; empty where a step calls by itself
}

type callerKey struct{}

// WithCaller notes in a context who calls the tools under it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who calls; the zero Caller where nobody has said so.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Request is a call that is not ours to run: a ClientTool's, which the caller
// answers, or one that needs a person's yes.
type Request struct {
	Tool    Info             // what is called
	Outputs []*spec.Variable // what the answer should hold
	Args    []byte           // the arguments, a JSON object in the order of the tool's inputs
	Caller  Caller           // who calls
}

// ClientHandler answers a call in the tool's place: an object with the tool's outputs,
// or where there is just one its value; anything that encoding/json can write. It
// may be called from several goroutines at once and ends with its context.
type ClientHandler func(context.Context, Request) (any, error)

// Approver asks a person whether a tool may be called. The reason of a no is told
// to the model and may be empty.
type Approver func(context.Context, Request) (yes bool, reason string, err error)

// ConvertArgs checks a call's arguments against the tool's inputs and makes values of
// the inputs' types of them.
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

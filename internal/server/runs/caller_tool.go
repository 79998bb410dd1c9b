package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/tool"
)

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

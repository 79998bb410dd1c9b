package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/tool"
)

// callerTool is a tool that the client of a run offers and runs itself.
type callerTool struct {
	run  *Run
	info tool.Info
	wait time.Duration // for the client
}

// errNoResult ends a run whose client has not answered.
var errNoResult = errors.New("the client did not send the results of its tools in time")

// callerTools returns the tools that the client of the run offers.
func (r *Run) callerTools(declared []CallerTool, wait time.Duration) []tool.RawTool {
	tools := make([]tool.RawTool, len(declared))
	for i, t := range declared {
		parameters := json.RawMessage(t.Parameters)
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
		}
		tools[i] = &callerTool{run: r, wait: wait, info: tool.Info{ID: t.Name, Name: t.Name, Description: t.Description, Parameters: parameters}}
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
	defer time.AfterFunc(t.wait, func() { t.run.end(errNoResult) }).Stop()
	return t.run.runClientTool(ctx, tool.Request{Tool: t.info, Args: []byte(args), Caller: tool.CallerOf(ctx)})
}

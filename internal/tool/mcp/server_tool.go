package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/tool"
)

// serverTool is a tool, a resource or a prompt of a server.
type serverTool struct {
	server     *Server
	key        string // identifies it on the server
	info       tool.Info
	repeatable bool // a call that the server may have processed can be made again
	send       func(ctx context.Context, session *sdk.ClientSession, args map[string]any) (any, error)
}

// toolKey returns the key of a tool of the server.
func toolKey(name string) string { return "tool " + name }

// newTool returns what a server offers under a name.
func (s *Server) newTool(key, name, description string) *serverTool {
	return &serverTool{server: s, key: key, info: tool.Info{ID: s.declared.ID + "/" + name, Set: s.declared.ID, Name: s.declared.Prefix + name, Description: description}}
}

// toolOf makes a tool of the server.
func (s *Server) toolOf(t *sdk.Tool) *serverTool {
	r := s.newTool(toolKey(t.Name), t.Name, t.Description)
	raw, err := json.Marshal(t.InputSchema)
	if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
		raw = []byte(`{"type":"object"}`)
	}
	r.info.Parameters, r.info.Inputs = raw, tool.InputsOf(raw)
	r.info.ReadOnly = t.Annotations != nil && t.Annotations.ReadOnlyHint
	r.repeatable = t.Annotations != nil && (t.Annotations.ReadOnlyHint || t.Annotations.IdempotentHint)
	r.send = func(ctx context.Context, session *sdk.ClientSession, args map[string]any) (any, error) {
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: t.Name, Arguments: args})
		if err != nil {
			return nil, err
		}
		if result.IsError {
			return nil, &refusal{httpx.SingleLine(texts(result.Content), 1000)}
		}
		value, err := read(result)
		if err != nil {
			return nil, &refusal{"invalid result: " + err.Error()}
		}
		return value, nil
	}
	return r
}

// refusal is the error that a tool of the server returned. The connection is intact.
type refusal struct{ text string }

// Error returns the text of the server.
func (e *refusal) Error() string { return e.text }

// Info describes the tool as the server had it when the tools were listed.
func (r *serverTool) Info() tool.Info { return r.info }

// Call calls the tool as the server has it now.
func (r *serverTool) Call(ctx context.Context, args map[string]any) (any, error) {
	limited, cancel, err := r.server.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	current, err := r.server.now(limited, r)
	if err != nil {
		return nil, r.failed(ctx, limited, err)
	}
	given, err := current.info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	var refused *refusal
	result, err := request(limited, r.server, current.repeatable, func(ctx context.Context, session *sdk.ClientSession) (any, error) {
		result, err := current.send(ctx, session, given)
		if text, ok := err.(*refusal); ok { //nolint:errorlint // it is not wrapped
			refused = text
			return nil, nil
		}
		return result, err
	})
	switch {
	case err != nil:
		return nil, r.failed(ctx, limited, err)
	case refused != nil:
		return nil, &tool.FailedError{Tool: r.info.ID, Message: refused.text}
	}
	return result, nil
}

// begin returns the context of a call, with its time limit. Calls of a server that may
// make requests wait for each other.
func (s *Server) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if !s.mayRequest() {
		limited, cancel := s.withTimeout(ctx)
		return limited, cancel, nil
	}
	end, err := s.asker.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	limited, cancel := s.withTimeout(ctx)
	s.asker.set(limited)
	return limited, func() { end(); cancel() }, nil
}

// failed returns the error of a call: the end of its context, else a failure with the
// server's name.
func (r *serverTool) failed(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		err = context.Cause(limited)
	}
	return &tool.FailedError{Tool: r.info.ID, Message: fmt.Sprintf("%s: %s", r.server.where(), err), Err: err}
}

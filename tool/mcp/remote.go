package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// serverTool is one tool of a server.
type serverTool struct {
	server *Server
	name   string
	info   tool.Info
}

func newRemote(s *Server, t *sdk.Tool) *serverTool {
	r := &serverTool{server: s, name: t.Name, info: tool.Info{ID: s.declared.ID + "/" + t.Name, Set: s.declared.ID, Name: t.Name, Description: t.Description}}
	raw, err := json.Marshal(t.InputSchema)
	if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
		raw = []byte(`{"type":"object"}`)
	}
	r.info.Parameters = raw
	r.info.Inputs = inputs(raw)
	return r
}

// inputs are the arguments that a schema names, in its order. What they may hold
// the server checks itself.
func inputs(schema json.RawMessage) []*spec.Variable {
	parsed, err := value.Parse(string(schema))
	root, ok := parsed.(*value.Record)
	if err != nil || !ok {
		return nil
	}
	required := map[string]bool{}
	if list, _ := root.Get("required"); list != nil {
		items, _ := list.([]any)
		for _, item := range items {
			name, _ := item.(string)
			required[name] = true
		}
	}
	properties, _ := root.Get("properties")
	fields, ok := properties.(*value.Record)
	if !ok {
		return nil
	}
	var vars []*spec.Variable
	for name := range fields.All() {
		vars = append(vars, &spec.Variable{ID: name, Type: spec.Type{Name: spec.Any}, Optional: !required[name]})
	}
	return vars
}

// Info tells what the tool is.
func (r *serverTool) Info() tool.Info { return r.info }

// Call asks the server. A call is not repeated when the connection is lost
// meanwhile: it may have been done.
func (r *serverTool) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := r.info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	limited, cancel := r.server.withTimeout(ctx)
	defer cancel()
	session, err := r.server.connected(limited)
	var result *sdk.CallToolResult
	if err == nil {
		if result, err = session.CallTool(limited, &sdk.CallToolParams{Name: r.name, Arguments: given}); err != nil {
			r.server.forget(session, err)
			err = r.server.lost(err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		err = context.Cause(limited)
	}
	if err != nil {
		return nil, &tool.FailedError{Tool: r.info.ID, Message: fmt.Sprintf("%s: %s", r.server.where(), err), Err: err}
	}
	if result.IsError {
		return nil, &tool.FailedError{Tool: r.info.ID, Message: httpx.SingleLine(texts(result.Content), 1000)}
	}
	return read(result)
}

// read makes a value of a result: of its structure where it has one, else of its
// contents: a text, JSON where it is an object or a list, or the bytes of one image or sound.
func read(result *sdk.CallToolResult) (any, error) {
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, fmt.Errorf("the result cannot be read: %w", err)
		}
		return value.Parse(string(raw))
	}
	if len(result.Content) == 1 {
		switch c := result.Content[0].(type) {
		case *sdk.ImageContent:
			return c.Data, nil
		case *sdk.AudioContent:
			return c.Data, nil
		}
	}
	text := texts(result.Content)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, err := value.Parse(trimmed); err == nil {
			return v, nil
		}
	}
	return text, nil
}

// texts are the contents as a person reads them, one a line.
func texts(contents []sdk.Content) string {
	var lines []string
	for _, c := range contents {
		switch c := c.(type) {
		case *sdk.TextContent:
			lines = append(lines, c.Text)
		default:
			if raw, err := json.Marshal(c); err == nil {
				lines = append(lines, string(raw))
			}
		}
	}
	return strings.Join(lines, "\n")
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// serverTool is one tool of a server.
type serverTool struct {
	server *Server
	name   string
	info   tool.Info
}

func newServerTool(s *Server, t *sdk.Tool) *serverTool {
	r := &serverTool{server: s, name: t.Name, info: tool.Info{ID: s.declared.ID + "/" + t.Name, Set: s.declared.ID, Name: t.Name, Description: t.Description}}
	raw, err := json.Marshal(t.InputSchema)
	if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
		raw = []byte(`{"type":"object"}`)
	}
	r.info.Parameters = raw
	r.info.Inputs = tool.InputsOf(raw)
	return r
}

// Info describes the tool.
func (r *serverTool) Info() tool.Info { return r.info }

// Call calls the tool. A call is not retried after a lost connection: the server may
// have run it.
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

// read returns the value of a result: its structured content, else its text, which is
// parsed if it is a JSON object or list, or the bytes of a single image or file. Texts and
// files are a list, in their order.
func read(result *sdk.CallToolResult) (any, error) {
	files := filesOf(result.Content)
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, fmt.Errorf("invalid result: %w", err)
		}
		v, err := value.Parse(string(raw))
		if err != nil || len(files) == 0 {
			return v, err
		}
		return withFiles(v, files), nil
	}
	switch {
	case len(files) == 1 && len(result.Content) == 1:
		return files[0], nil
	case len(files) > 0:
		return mixed(result.Content), nil
	}
	text := texts(result.Content)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, err := value.Parse(trimmed); err == nil {
			return v, nil
		}
	}
	return text, nil
}

// texts joins the text of the contents, one per line.
func texts(contents []sdk.Content) string {
	var lines []string
	for _, c := range contents {
		switch c := c.(type) {
		case *sdk.TextContent:
			lines = append(lines, c.Text)
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Blob == nil {
				lines = append(lines, c.Resource.Text)
			}
		default:
			if raw, err := json.Marshal(c); err == nil {
				lines = append(lines, string(raw))
			}
		}
	}
	return strings.Join(lines, "\n")
}

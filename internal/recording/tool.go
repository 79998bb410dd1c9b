package recording

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/tool"
)

// server records or replays the tools of a server.
type server struct {
	id      string
	next    tool.Set // nil in a replay
	session *Session
}

// Server returns the tools of a server whose calls are recorded, or replayed: next is nil
// in a replay.
func (s *Session) Server(id string, next tool.Set) tool.Set {
	return &server{id: id, next: next, session: s}
}

// Info identifies the server.
func (s *server) Info() tool.Info { return tool.Info{ID: s.id} }

// Call returns an error: only the server's tools can be called.
func (s *server) Call(context.Context, map[string]any) (any, error) {
	return nil, fmt.Errorf("tool %s is a server; call one of its tools", s.id)
}

// Tools replays the tools of the server, or lists and records them.
func (s *server) Tools(ctx context.Context) ([]tool.Tool, error) {
	listed, err := exchange(s.session, kindTools, s.id, struct{}{}, func() ([]toolJSON, error) {
		tools, err := s.next.Tools(ctx)
		var all []toolJSON
		for _, t := range tools {
			info := t.Info()
			all = append(all, toolJSON{info.Name, info.Description, info.Parameters})
		}
		return all, err
	})
	if err != nil {
		return nil, err
	}
	var all []tool.Tool
	for _, t := range listed {
		info := tool.Info{ID: s.id + "/" + t.Name, Set: s.id, Name: t.Name, Description: t.Description, Parameters: t.Parameters, Inputs: tool.InputsOf(t.Parameters)}
		all = append(all, &serverTool{info: info, server: s})
	}
	return all, nil
}

// live returns a tool of the server itself.
func (s *server) live(ctx context.Context, name string) (tool.Tool, error) {
	tools, err := s.next.Tools(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Info().Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no tool %s any more: record all calls again", s.id, name)
	}
	return tools[i], nil
}

// serverTool records or replays the calls of a tool of a server.
type serverTool struct {
	info   tool.Info
	server *server
}

// toolResponse is the result of a tool as it is recorded.
type toolResponse struct {
	Result json.RawMessage `json:"result,omitempty"`
	Bytes  string          `json:"base64,omitempty"`
	Error  *toolError      `json:"error,omitempty"`
}

type toolError struct {
	Message string `json:"message"`
	Method  string `json:"method,omitempty"`
	URL     string `json:"url,omitempty"`
	Status  int    `json:"status,omitempty"`
	Host    bool   `json:"host,omitempty"` // a *tool.FailedError
}

// Info describes the tool.
func (t *serverTool) Info() tool.Info { return t.info }

// Call replays the result, or calls the tool and records it.
func (t *serverTool) Call(ctx context.Context, args map[string]any) (any, error) {
	answer, err := exchange(t.server.session, kindTool, t.info.ID, args, func() (*toolResponse, error) {
		live, err := t.server.live(ctx, t.info.Name)
		if err != nil {
			return nil, err
		}
		result, err := live.Call(ctx, args)
		return toolAnswer(ctx, result, err)
	})
	if err != nil {
		return nil, err
	}
	return answer.result(t.info.ID)
}

// toolAnswer returns a result as it is recorded.
func toolAnswer(ctx context.Context, result any, err error) (*toolResponse, error) {
	if failure, ok := errors.AsType[*tool.Error](err); ok && ctx.Err() == nil {
		return &toolResponse{Error: &toolError{Message: failure.Message, Method: failure.Method, URL: failure.URL, Status: failure.Status}}, nil
	}
	if failure, ok := errors.AsType[*tool.FailedError](err); ok && ctx.Err() == nil {
		return &toolResponse{Error: &toolError{Message: failure.Message, Host: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	if raw, ok := result.([]byte); ok {
		return &toolResponse{Bytes: base64.StdEncoding.EncodeToString(raw)}, nil
	}
	text, err := textfmt.CompactJSON(result)
	return &toolResponse{Result: text}, err
}

func (r *toolResponse) result(id string) (any, error) {
	switch {
	case r.Error != nil && r.Error.Host:
		return nil, &tool.FailedError{Tool: id, Message: r.Error.Message}
	case r.Error != nil:
		return nil, &tool.Error{Tool: id, Method: r.Error.Method, URL: r.Error.URL, Status: r.Error.Status, Message: r.Error.Message}
	case r.Bytes != "":
		return base64.StdEncoding.DecodeString(r.Bytes)
	case len(r.Result) == 0:
		return nil, nil
	}
	return decodeNumbers(r.Result)
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/tool"
)

// catalog is what a server offers, as far as the document allows it. It is read again
// after the server has announced a change, and after a new connection.
type catalog struct {
	listing sync.Mutex // held while the lists are requested

	mu       sync.Mutex
	revision int           // counts the changes that the server may have made
	read     int           // the revision at which the lists were requested; less than revision if they are out of date
	tools    []*serverTool // nil before the first time
	all      []string      // names of all tools of the server, allowed by the document or not
}

// expire makes the next use read the lists again.
func (c *catalog) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
}

// current returns the tools in order if they are known and up to date.
func (c *catalog) current() ([]tool.Tool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools == nil || c.read != c.revision {
		return nil, false
	}
	tools := make([]tool.Tool, 0, len(c.tools))
	for _, t := range c.tools {
		tools = append(tools, t)
	}
	return tools, true
}

// set stores the lists that were requested at a revision.
func (c *catalog) set(revision int, found *offers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.tools, c.all = revision, append([]*serverTool{}, found.tools...), found.all
}

// find returns the tool with a key, nil for none; the caller holds the lock.
func (c *catalog) find(key string) *serverTool {
	for _, t := range c.tools {
		if t.key == key {
			return t
		}
	}
	return nil
}

// Revision is a number that changes when the server's tools may have changed.
func (s *Server) Revision() int {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	return s.catalog.revision
}

// Tools returns the server's tools that the document allows. It requests the lists if they
// may have changed since the last time.
func (s *Server) Tools(ctx context.Context) ([]tool.Tool, error) {
	limited, cancel := s.withTimeout(ctx)
	defer cancel()
	tools, err := s.list(limited)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, fmt.Errorf("tool %s: %s: %w", s.declared.ID, s.where(), err)
	}
	return tools, s.missing()
}

// missing returns an error if the document allows a tool that the server does not have.
func (s *Server) missing() error {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	for _, name := range s.declared.Tools {
		if s.catalog.find(toolKey(name)) == nil {
			return fmt.Errorf("tool %s: %s", s.declared.ID, unknown("tool", name, s.catalog.all))
		}
	}
	return nil
}

// unknown is the message that a server has no tool or prompt of a name, and which it has.
func unknown(kind, name string, all []string) string {
	if len(all) == 0 {
		return fmt.Sprintf("the server has no %s %q; it has none", kind, name)
	}
	return httpx.SingleLine(fmt.Sprintf("the server has no %s %q; it has %s", kind, name, strings.Join(all, ", ")), 500) + diag.DidYouMean(name, all)
}

// list returns the tools of the catalog, which it reads if it is out of date. Callers at
// the same time share the request.
func (s *Server) list(ctx context.Context) ([]tool.Tool, error) {
	s.catalog.listing.Lock()
	defer s.catalog.listing.Unlock()
	if tools, ok := s.catalog.current(); ok {
		return tools, nil
	}
	// A change that is announced while the lists are read makes them out of date again.
	var revision int
	found, err := request(ctx, s, true, func(ctx context.Context, session *sdk.ClientSession) (*offers, error) {
		revision = s.Revision()
		return s.offered(ctx, session)
	})
	if err != nil {
		return nil, err
	}
	s.catalog.set(revision, found)
	var tools []tool.Tool
	for _, t := range found.tools {
		tools = append(tools, t)
	}
	return tools, nil
}

// offers is what a server offers.
type offers struct {
	tools []*serverTool // those that the document allows
	all   []string      // the names of all of its tools
}

// offered requests the lists of the server that the document uses.
func (s *Server) offered(ctx context.Context, session *sdk.ClientSession) (*offers, error) {
	found := &offers{}
	caps := session.InitializeResult().Capabilities
	if caps == nil {
		caps = &sdk.ServerCapabilities{}
	}
	if caps.Tools != nil && s.declared.UsesTools() {
		listed, err := collect(session.Tools(ctx, nil))
		if err != nil {
			return nil, err
		}
		for _, t := range listed {
			if slices.Contains(found.all, t.Name) {
				continue
			}
			found.all = append(found.all, t.Name)
			if s.declared.Allows(t.Name) {
				found.tools = append(found.tools, s.toolOf(t))
			}
		}
	}
	if err := s.addResources(ctx, session, caps, found); err != nil {
		return nil, err
	}
	return found, s.addPrompts(ctx, session, caps, found)
}

// now returns a tool as the server has it now.
func (s *Server) now(ctx context.Context, t *serverTool) (*serverTool, error) {
	if _, err := s.list(ctx); err != nil {
		return nil, err
	}
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	if found := s.catalog.find(t.key); found != nil {
		return found, nil
	}
	return nil, &answerError{unknown("tool", strings.TrimPrefix(t.info.Name, s.declared.Prefix), s.catalog.all)}
}

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

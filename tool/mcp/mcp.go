// Package mcp makes the tools of MCPTools: those of a server that speaks the Model
// Context Protocol, started as a program or called at a URL.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Env is the environment of a server.
type Env struct {
	tool.Options
	Getenv func(string) string // the environment that the document sees
	Folder string              // base of relative paths of programs: the folder of the tool's document
}

// Server is one server and the tools that the document allows. It is started, or
// connected to, when its tools are first used, and again after the connection was lost.
// It is safe for concurrent use.
type Server struct {
	declared *spec.MCPTool
	timeout  time.Duration
	connect  func() (sdk.Transport, error)
	alive    context.Context // ends when the server is closed
	end      context.CancelFunc
	tail     subprocess.Tail // end of a program's standard error

	mu      sync.Mutex
	session *sdk.ClientSession // nil while not connected
}

// New makes the server of a tool; it starts nothing.
func New(t *spec.MCPTool, env Env) (*Server, error) {
	s := &Server{declared: t, timeout: time.Duration(t.Timeout)}
	if s.timeout <= 0 {
		s.timeout = 30 * time.Second
	}
	s.alive, s.end = context.WithCancel(context.Background())
	var err error
	if t.Command != "" {
		s.connect, err = s.program(env)
	} else {
		s.connect, err = s.remote(env)
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	return s, nil
}

// program returns a function that starts the server.
func (s *Server) program(env Env) (func() (sdk.Transport, error), error) {
	path, err := subprocess.Find(s.declared.Command, env.Folder, env.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	given, err := tool.Environment(s.declared.Env, env.Secret)
	if err != nil {
		return nil, err
	}
	environ := subprocess.Environment(env.Getenv, given)
	return func() (sdk.Transport, error) {
		cmd := exec.CommandContext(s.alive, path, s.declared.Args...) //nolint:gosec // the operator's document names the program
		cmd.Env, cmd.Stderr = environ, &s.tail
		subprocess.Group(cmd)
		cmd.WaitDelay = time.Second
		return &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Second}, nil
	}, nil
}

// remote returns a function that connects to the server at a URL.
func (s *Server) remote(env Env) (func() (sdk.Transport, error), error) {
	client, err := tool.Client(tool.Service{Tool: s.declared.ID, URL: s.declared.URL, Auth: s.declared.Auth, AllowPrivate: s.declared.AllowPrivate}, env.Options)
	if err != nil {
		return nil, err
	}
	return func() (sdk.Transport, error) {
		return &sdk.StreamableClientTransport{Endpoint: s.declared.URL, HTTPClient: client, DisableStandaloneSSE: true}, nil
	}, nil
}

// Close closes the connection and ends a server that was started.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
	s.end()
}

// drop closes the connection; the caller holds the lock.
func (s *Server) drop() {
	if s.session != nil {
		_ = s.session.Close() // a failure to close does not matter
		s.session = nil
	}
}

// connected returns the session with the server, a new one if there is none.
func (s *Server) connected(ctx context.Context) (*sdk.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return s.session, nil
	}
	transport, err := s.connect()
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "qtype", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, s.lost(err)
	}
	s.session = session
	return session, nil
}

// lost returns an error of the connection with the last line that the program wrote.
func (s *Server) lost(err error) error {
	text := httpx.SingleLine(err.Error(), 300)
	if line := s.tail.LastLine(); line != "" {
		text += "; its last line: " + line
	}
	return errors.New(text)
}

// withTimeout limits a call.
func (s *Server) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("timed out after %s", s.timeout))
}

// Info identifies the server; its tools have their own Info.
func (s *Server) Info() tool.Info { return tool.Info{ID: s.declared.ID} }

// Call returns an error: only the server's tools can be called.
func (s *Server) Call(context.Context, map[string]any) (any, error) {
	return nil, fmt.Errorf("tool %s is a server; call one of its tools", s.declared.ID)
}

// Tools returns those of the server's tools that the document allows.
func (s *Server) Tools(ctx context.Context) ([]tool.Tool, error) {
	limited, cancel := s.withTimeout(ctx)
	defer cancel()
	listed, err := s.list(limited)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, fmt.Errorf("tool %s: %s: %w", s.declared.ID, s.where(), err)
	}
	var names []string
	var tools []tool.Tool
	for _, t := range listed {
		names = append(names, t.Name)
		if len(s.declared.Tools) == 0 || slices.Contains(s.declared.Tools, t.Name) {
			tools = append(tools, newServerTool(s, t))
		}
	}
	for _, name := range s.declared.Tools {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("tool %s: the server has no tool %q; it has %s", s.declared.ID, name, strings.Join(names, ", "))
		}
	}
	return tools, nil
}

// list requests the server's tools. If the connection was lost, it reconnects once.
func (s *Server) list(ctx context.Context) ([]*sdk.Tool, error) {
	for again := false; ; again = true {
		session, err := s.connected(ctx)
		if err != nil {
			return nil, err
		}
		var all []*sdk.Tool
		for t, err := range session.Tools(ctx, nil) {
			if err == nil {
				all = append(all, t)
				continue
			}
			if s.forget(session, err) && !again {
				all = nil
				break
			}
			return nil, s.lost(err)
		}
		if all != nil || again {
			return all, nil
		}
	}
}

// forget closes a connection after an error, unless the error is an answer of the server
// or the end of a call. It reports whether it did.
func (s *Server) forget(session *sdk.ClientSession, err error) bool {
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && answer != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.drop()
	}
	return true
}

// where returns the server as the document names it.
func (s *Server) where() string {
	if s.declared.Command != "" {
		return s.declared.Command
	}
	return s.declared.URL
}

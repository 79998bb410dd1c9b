// Package factory makes the tools that a document declares, each of its type:
// HTTP endpoints, Python functions, programs, MCP servers, flows, memories, and
// functions of the program that runs the application.
package factory

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/internal/tool/python"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Options are what tools need of the application and its host.
type Options struct {
	tool.Options
	Servers *http.Client                              // of MCP servers; nil: they make one
	Getenv  func(string) string                       // the environment that the document sees
	Folder  string                                    // folder of the application's document, the second place where tools look for files
	Answer  func(id string) tool.ClientHandler        // handlers of ClientTools; nil, or a nil handler, where there is none
	Sample  Sampler                                   // calls a model for a server; nil where there are no models
	Flow    Flow                                      // runs a flow for a FlowTool; nil where there is none
	Memory  func(*spec.MemoryTool) (tool.Tool, error) // makes a MemoryTool; nil where there are no memories
	Index   func(*spec.IndexTool) (tool.Tool, error)  // makes an IndexTool; nil where there are no indexes
	Log     func(line string)                         // receives what Python functions print; may be nil
	Warn    func(string)                              // receives warnings; may be nil
	Remote  bool                                      // tools that remote documents declare may start programs, as far as the policy allows them
}

// Sampler calls a model for the server of an MCPTool.
type Sampler func(context.Context, mcp.SampleRequest) (*mcp.Sample, error)

// Flow runs a flow on one row. It calls emit for every result row, with one value
// for each of the flow's outputs or the error of the row.
type Flow func(ctx context.Context, call FlowCall, emit func(outputs []any, failed error) error) error

// FlowCall is one run of a flow.
type FlowCall struct {
	Flow   *spec.Flow     // the flow
	Inputs []any          // one for each of its inputs; value.Unset where nothing is given
	Caller tool.Caller    // whose row it is
	Tool   *spec.FlowTool // the tool, which declares the session and the budget
}

// Factory makes tools, and holds what they share. It is safe for concurrent use.
type Factory struct {
	opts Options
	pool *python.Pool // starts no process before a function is called
	host *containment.Host

	mu      sync.Mutex
	servers []*mcp.Server
}

// New makes a Factory; it starts nothing.
func New(opts Options) *Factory {
	host := containment.NewHost(containment.Options{Getenv: opts.Getenv, Policy: opts.Policy, Supervisor: opts.Supervisor, Warn: opts.Warn})
	return &Factory{opts: opts, host: host, pool: python.NewPool(python.Options{Log: opts.Log, Supervisor: opts.Supervisor})}
}

// Close ends the processes and connections that the tools have started.
func (f *Factory) Close() {
	f.pool.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		s.Close()
	}
	f.servers = nil
}

// Tool makes the tool that a document declares. It calls nothing; an error means
// that the declaration cannot work here. A tool that a remote document declares
// must not start programs.
func (f *Factory) Tool(t spec.Tool) (tool.Tool, error) {
	if missing := spec.CheckAvailable(t); missing != nil {
		return nil, missing
	}
	if own, ok := t.(tool.Maker); ok {
		return f.own(own)
	}
	b := builders()[reflect.TypeOf(t)]
	if program := b.program(t); program != "" {
		if err := f.checkProgram(t, program); err != nil {
			return nil, err
		}
	}
	return b.build(f, t)
}

// checkProgram returns an error if the document may not start the program of a tool.
func (f *Factory) checkProgram(t spec.Tool, program string) error {
	if err := f.opts.Policy.Program(program); err != nil {
		return fmt.Errorf("tool %s: %w", t.EntityID(), err)
	}
	if from := remoteURL(t); from != "" && !f.opts.Remote {
		return fmt.Errorf("tool %s is declared at %s and starts a program: remote documents must not start programs; copy the document to this host to run it", t.EntityID(), from)
	}
	return nil
}

// Program returns the program that the calls of a tool start on this host, as the document
// names it; empty for none.
func Program(t spec.Tool) string {
	if b, ok := builders()[reflect.TypeOf(t)]; ok {
		return b.program(t)
	}
	return ""
}

// IsServer reports whether a declared tool is made as a tool.Set: the tools of a server.
func IsServer(t spec.Tool) bool { return builders()[reflect.TypeOf(t)].server }

// Source returns a fingerprint of the program text behind a tool, for caches of
// its results; empty where there is none.
func (f *Factory) Source(t spec.Tool) string {
	if b, ok := builders()[reflect.TypeOf(t)]; ok {
		return b.source(f, t)
	}
	return ""
}

func (f *Factory) secret(s spec.Secret) (string, error) {
	if f.opts.Secret == nil {
		return s.Reveal(), nil
	}
	return f.opts.Secret(s)
}

// remoteURL returns the URL of the document that declares a tool; empty for a local file.
func remoteURL(t spec.Tool) string {
	if file := t.Position().Span().File; file != nil && strings.Contains(file.Path, "://") {
		return file.Path
	}
	return ""
}

// folders returns where a tool looks for its files: in the folder of the file that
// declares it, then in the folder of the application's document.
func (f *Factory) folders(t spec.Tool) []string {
	var all []string
	if file := t.Position().Span().File; file != nil && remoteURL(t) == "" {
		all = append(all, filepath.Dir(file.Path))
	}
	if f.opts.Folder != "" && !slices.Contains(all, f.opts.Folder) {
		all = append(all, f.opts.Folder)
	}
	if len(all) == 0 {
		all = append(all, ".")
	}
	return all
}

// Package toolbox makes the tools that a document declares, each of its own kind:
// HTTP endpoints, Python functions, programs, flows, and functions of whoever
// runs the application.
package factory

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/builtin"
	"github.com/qtype-dev/qtype/tool/command"
	"github.com/qtype-dev/qtype/tool/mcp"
	"github.com/qtype-dev/qtype/tool/python"
)

// Options says how tools reach the world around them.
type Options struct {
	tool.Options
	Getenv func(string) string             // the environment that the document sees
	Folder string                          // of the application's document, where tools look beside their own
	Answer func(string) tool.ClientHandler // who answers a ClientTool, by its id; nil, or a nil Answer, where nobody does
	Flow   Flow                            // runs a flow for a FlowTool; nil where there is none
	Log    func(line string)               // is told what Python functions print; may be nil
}

// Flow runs a flow on one row; it hands every result row to emit, one value for
// each of the flow's outputs or why the row failed.
type Flow func(ctx context.Context, call FlowCall, emit func(outputs []any, failed error) error) error

// FlowCall asks for one run of a flow.
type FlowCall struct {
	Flow   *spec.Flow  // the flow
	Inputs []any       // one for each of its inputs; value.Unset where nothing is given
	Caller tool.Caller // whose session and row it is
}

// Factory makes tools, and holds what they share. It is safe for concurrent use.
type Factory struct {
	opts Options
	pool *python.Pool // starts nothing before a function is called

	mu      sync.Mutex
	servers []*mcp.Server
}

// New makes a box; it starts nothing.
func New(opts Options) *Factory {
	return &Factory{opts: opts, pool: python.NewPool(python.Options{Log: opts.Log})}
}

// Close ends what the tools have started.
func (b *Factory) Close() {
	b.pool.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.servers {
		s.Close()
	}
	b.servers = nil
}

// Tool makes the tool that a document declares. Nothing is called yet; an error
// means that the declaration cannot work here.
func (b *Factory) Tool(t spec.Tool) (tool.Tool, error) {
	if p, ok := t.(*spec.PythonFunctionTool); ok && builtin.Has(p) {
		return builtin.New(p)
	}
	if from := remote(t); from != "" && startsPrograms(t) {
		return nil, fmt.Errorf("tool %s starts a program of this machine, and is declared at %s: a document of another machine may not; copy it here to run it", t.EntityID(), from)
	}
	switch t := t.(type) {
	case *spec.PythonFunctionTool:
		return python.New(t, python.Surroundings{Pool: b.pool, Getenv: b.opts.Getenv, Secret: b.secret, Folders: b.folders(t)})
	case *spec.CommandTool:
		run, err := command.New(t, command.Env{Getenv: b.opts.Getenv, Secret: b.secret, Folder: b.folders(t)[0]})
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.ID, err)
		}
		return newClientTool(t.Common(), run, 0), nil
	case *spec.ClientTool:
		return b.client(t)
	case *spec.FlowTool:
		return b.flow(t)
	case *spec.MCPTool:
		return b.server(t)
	}
	return tool.New(t, b.opts.Options)
}

// Source is a fingerprint of the program text behind a tool, for who keeps its
// results; empty where none can be found.
func (b *Factory) Source(t spec.Tool) string {
	p, ok := t.(*spec.PythonFunctionTool)
	if !ok || builtin.Has(p) || remote(t) != "" {
		return ""
	}
	return python.Source(p.ModulePath, python.Surroundings{Getenv: b.opts.Getenv, Folders: b.folders(t)})
}

// server makes an MCPTool.
func (b *Factory) server(t *spec.MCPTool) (tool.Tool, error) {
	s, err := mcp.New(t, mcp.Surroundings{Options: b.opts.Options, Getenv: b.opts.Getenv, Folder: b.folders(t)[0]})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = append(b.servers, s)
	return s, nil
}

// secret is the text of a secret.
func (b *Factory) secret(s spec.Secret) (string, error) {
	if b.opts.Secret == nil {
		return s.Reveal(), nil
	}
	return b.opts.Secret(s)
}

// remote is the address of the document that declares a tool; empty for one of this machine.
func remote(t spec.Tool) string {
	if file := t.Place().Span().File; file != nil && strings.Contains(file.Path, "://") {
		return file.Path
	}
	return ""
}

// startsPrograms tells whether a tool runs code on this machine.
func startsPrograms(t spec.Tool) bool {
	switch t := t.(type) {
	case *spec.PythonFunctionTool, *spec.CommandTool:
		return true
	case *spec.MCPTool:
		return t.Command != ""
	}
	return false
}

// folders are where a tool looks for its files: beside the file that declares
// it, then beside the application's document.
func (b *Factory) folders(t spec.Tool) []string {
	all := []string{}
	if file := t.Place().Span().File; file != nil && remote(t) == "" {
		all = append(all, filepath.Dir(file.Path))
	}
	if b.opts.Folder != "" && !slices.Contains(all, b.opts.Folder) {
		all = append(all, b.opts.Folder)
	}
	if len(all) == 0 {
		all = append(all, ".")
	}
	return all
}

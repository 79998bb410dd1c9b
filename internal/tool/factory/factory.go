// Package factory makes the tools that a document declares, each of its type:
// HTTP endpoints, Python functions, programs, MCP servers, flows, memories, and
// functions of the program that runs the application.
package factory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/internal/tool/python"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
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

// hostedTool is a tool that the provider of a model runs: it is offered, and never called here.
type hostedTool struct{ info tool.Info }

// hosted makes a HostedTool.
func (f *Factory) hosted(t *spec.HostedTool) (tool.Tool, error) {
	info := tool.Describe(t.Common(), nil)
	info.Name, info.Hosted = cmp.Or(info.Name, t.ID), t.Hosted
	if len(t.Settings) > 0 {
		raw, err := json.Marshal(t.Settings)
		if err != nil {
			return nil, fmt.Errorf("tool %s: settings cannot be encoded as JSON", t.ID)
		}
		info.Settings = raw
	}
	return &hostedTool{info}, nil
}

// Info describes the tool.
func (h *hostedTool) Info() tool.Info { return h.info }

// Call is an error: calls do not reach this program.
func (h *hostedTool) Call(context.Context, map[string]any) (any, error) {
	return nil, &tool.FailedError{Tool: h.info.ID, Message: fmt.Sprintf("the provider of the model runs %s; it cannot be called here", h.info.Hosted)}
}

// maxDepth limits how deep FlowTools may be nested. The validator rejects recursion
// (QT430), but documents made by Go programs are not validated.
const maxDepth = 16

// flowTool runs a flow. Its arguments are the flow's inputs. Its result is an object of
// the flow's outputs, or a list of them if the flow does not return exactly one row.
type flowTool struct {
	info     tool.Info
	declared *spec.FlowTool
	flow     *spec.Flow
	run      Flow
}

// flow makes a FlowTool.
func (f *Factory) flow(t *spec.FlowTool) (tool.Tool, error) {
	flow := t.Flow.To
	if flow == nil || f.opts.Flow == nil {
		return nil, fmt.Errorf("tool %s: the flow is not linked", t.ID)
	}
	inputs := make([]*spec.Variable, len(flow.Inputs))
	for i, ref := range flow.Inputs {
		if inputs[i] = ref.To; ref.To == nil {
			return nil, fmt.Errorf("tool %s: input %s of flow %s is not linked", t.ID, ref.ID, flow.ID)
		}
	}
	base := spec.ToolBase{ID: t.ID, Name: t.Name, Description: t.Description}
	if base.Name == "" {
		base.Name = flow.ID
	}
	if base.Description == "" {
		base.Description = flow.Description
	}
	return &flowTool{tool.Describe(&base, inputs), t, flow, f.opts.Flow}, nil
}

// Info describes the tool.
func (t *flowTool) Info() tool.Info { return t.info }

type depthKey struct{}

// Call runs the flow on one row.
func (t *flowTool) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := tool.ConvertArgs(t.info, args, value.Assign)
	if err != nil {
		return nil, err
	}
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth >= maxDepth {
		return nil, t.failed(fmt.Errorf("FlowTools are nested more than %d deep", maxDepth))
	}
	call := FlowCall{Flow: t.flow, Inputs: make([]any, len(t.info.Inputs)), Caller: tool.CallerOf(ctx), Tool: t.declared}
	for i, in := range t.info.Inputs {
		call.Inputs[i] = value.Unset
		if v, ok := given[in.ID]; ok {
			call.Inputs[i] = v
		}
	}
	var rows []any
	var failed error
	err = t.run(context.WithValue(ctx, depthKey{}, depth+1), call, func(outputs []any, why error) error {
		if why != nil && failed == nil {
			failed = why
		}
		rows = append(rows, t.row(outputs))
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, t.failed(err)
	case failed != nil:
		return nil, t.failed(failed)
	case len(rows) == 1:
		return rows[0], nil
	}
	return rows, nil
}

// row returns an object of the flow's outputs.
func (t *flowTool) row(outputs []any) any {
	fields := make([]value.Field, 0, len(outputs))
	for i, v := range outputs {
		if v == value.Unset {
			v = nil
		}
		fields = append(fields, value.Field{Name: t.flow.Outputs[i].ID, Value: v})
	}
	return value.NewRecord("", fields...)
}

func (t *flowTool) failed(err error) error {
	return &tool.FailedError{Tool: t.info.ID, Message: fmt.Sprintf("flow %s: %s", t.flow.ID, httpx.SingleLine(err.Error(), 1000)), Err: err}
}

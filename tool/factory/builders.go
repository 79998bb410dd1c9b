package factory

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/builtin"
	"github.com/qtype-dev/qtype/tool/command"
	"github.com/qtype-dev/qtype/tool/mcp"
	"github.com/qtype-dev/qtype/tool/python"
)

// builder is what the factory knows of one type of tool.
type builder struct {
	build          func(*Factory, spec.Tool) (tool.Tool, error)
	startsPrograms func(spec.Tool) bool             // whether its calls start programs on this host
	source         func(*Factory, spec.Tool) string // see Factory.Source
	server         bool                             // what build returns is a tool.Set
}

// builders is the one table of the types of tools.
var builders = sync.OnceValue(func() map[reflect.Type]builder {
	table := map[reflect.Type]builder{}
	add(table, (*Factory).api, never, noSource)
	add(table, (*Factory).client, never, noSource)
	add(table, (*Factory).command, always, noSource)
	add(table, (*Factory).flow, never, noSource)
	add(table, (*Factory).index, never, noSource)
	addServer(table, (*Factory).mcp, func(t *spec.MCPTool) bool { return t.Command != "" })
	add(table, (*Factory).memory, never, noSource)
	add(table, (*Factory).python, func(t *spec.PythonFunctionTool) bool { return !builtin.Has(t) }, (*Factory).pythonSource)
	return table
})

// add adds the builder of one type of tool.
func add[T spec.Tool](table map[reflect.Type]builder, build func(*Factory, T) (tool.Tool, error), startsPrograms func(T) bool, source func(*Factory, T) string) {
	table[reflect.TypeFor[T]()] = builder{
		build:          func(f *Factory, t spec.Tool) (tool.Tool, error) { return build(f, t.(T)) },
		startsPrograms: func(t spec.Tool) bool { return startsPrograms(t.(T)) },
		source:         func(f *Factory, t spec.Tool) string { return source(f, t.(T)) },
	}
}

// addServer adds the builder of one type of tool that is a tool.Set.
func addServer[T spec.Tool](table map[reflect.Type]builder, build func(*Factory, T) (tool.Tool, error), startsPrograms func(T) bool) {
	add(table, build, startsPrograms, noSource)
	b := table[reflect.TypeFor[T]()]
	b.server = true
	table[reflect.TypeFor[T]()] = b
}

func never[T spec.Tool](T) bool                { return false }
func always[T spec.Tool](T) bool               { return true }
func noSource[T spec.Tool](*Factory, T) string { return "" }

func (f *Factory) api(t *spec.APITool) (tool.Tool, error) { return tool.NewAPI(t, f.opts.Options) }

func (f *Factory) memory(t *spec.MemoryTool) (tool.Tool, error) {
	if f.opts.Memory == nil {
		return nil, fmt.Errorf("tool %s: the memory is not part of the application", t.ID)
	}
	return f.opts.Memory(t)
}

func (f *Factory) index(t *spec.IndexTool) (tool.Tool, error) {
	if f.opts.Index == nil {
		return nil, fmt.Errorf("tool %s: the index is not part of the application", t.ID)
	}
	return f.opts.Index(t)
}

func (f *Factory) python(t *spec.PythonFunctionTool) (tool.Tool, error) {
	if builtin.Has(t) {
		return builtin.New(t)
	}
	return python.New(t, python.Env{Pool: f.pool, Getenv: f.opts.Getenv, Secret: f.secret, Folders: f.folders(t)})
}

func (f *Factory) pythonSource(t *spec.PythonFunctionTool) string {
	if builtin.Has(t) || remoteURL(t) != "" {
		return ""
	}
	return python.Source(t.ModulePath, python.Env{Getenv: f.opts.Getenv, Folders: f.folders(t)})
}

func (f *Factory) command(t *spec.CommandTool) (tool.Tool, error) {
	run, err := command.New(t, command.Env{Getenv: f.opts.Getenv, Secret: f.secret, Folder: f.folders(t)[0]})
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	return newClientTool(t.Common(), run, 0), nil
}

// mcp makes the server of an MCPTool, which Close closes.
func (f *Factory) mcp(t *spec.MCPTool) (tool.Tool, error) {
	options := f.opts.Options
	options.HTTP = f.opts.Servers
	if t.Sampling != nil && f.opts.Sample == nil {
		return nil, fmt.Errorf("tool %s: the model of its sampling is not part of the application", t.ID)
	}
	s, err := mcp.New(t, mcp.Env{Options: options, Getenv: f.opts.Getenv, Folder: f.folders(t)[0], Sample: f.opts.Sample, Ask: f.ask})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers = append(f.servers, s)
	return s, nil
}

package factory

import (
	"cmp"
	"fmt"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/tool/builtin"
	"github.com/qtype-dev/qtype/internal/tool/command"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/internal/tool/python"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// builder is what the factory knows of one type of tool.
type builder struct {
	build   func(*Factory, spec.Tool) (tool.Tool, error)
	program func(spec.Tool) string           // the program that its calls start on this host, as the document names it; empty for none
	source  func(*Factory, spec.Tool) string // see Factory.Source
	server  bool                             // what build returns is a tool.Set
}

// builders is the one table of the types of tools.
var builders = sync.OnceValue(func() map[reflect.Type]builder {
	table := map[reflect.Type]builder{}
	add(table, (*Factory).api, noProgram, noSource)
	add(table, (*Factory).client, noProgram, noSource)
	add(table, (*Factory).command, commandProgram, noSource)
	add(table, (*Factory).flow, noProgram, noSource)
	add(table, (*Factory).hosted, noProgram, noSource)
	add(table, (*Factory).index, noProgram, noSource)
	addServer(table, (*Factory).mcp, func(t *spec.MCPTool) string { return t.Command })
	add(table, (*Factory).memory, noProgram, noSource)
	add(table, (*Factory).python, pythonProgram, (*Factory).pythonSource)
	return table
})

// Types returns the types of tools, as documents name them.
func Types() []string {
	var names []string
	for t := range builders() {
		names = append(names, t.Elem().Name())
	}
	return names
}

// add adds the builder of one type of tool.
func add[T spec.Tool](table map[reflect.Type]builder, build func(*Factory, T) (tool.Tool, error), program func(T) string, source func(*Factory, T) string) {
	table[reflect.TypeFor[T]()] = builder{
		build:   func(f *Factory, t spec.Tool) (tool.Tool, error) { return build(f, t.(T)) },
		program: func(t spec.Tool) string { return program(t.(T)) },
		source:  func(f *Factory, t spec.Tool) string { return source(f, t.(T)) },
	}
}

// addServer adds the builder of one type of tool that is a tool.Set.
func addServer[T spec.Tool](table map[reflect.Type]builder, build func(*Factory, T) (tool.Tool, error), program func(T) string) {
	add(table, build, program, noSource)
	b := table[reflect.TypeFor[T]()]
	b.server = true
	table[reflect.TypeFor[T]()] = b
}

func noProgram[T spec.Tool](T) string { return "" }

// commandProgram returns the program of a tool. A tool without one fails later.
func commandProgram(t *spec.CommandTool) string { return cmp.Or(t.Program, "without a name") }

// pythonProgram returns python, unless the function is part of this program.
func pythonProgram(t *spec.PythonFunctionTool) string {
	if builtin.Has(t) {
		return ""
	}
	return "python"
}

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
	container, err := f.container(t, t.Containment)
	if err != nil {
		return nil, err
	}
	return python.New(t, python.Env{Pool: f.pool, Getenv: f.opts.Getenv, Secret: f.secret, Folders: f.folders(t), Container: container})
}

func (f *Factory) pythonSource(t *spec.PythonFunctionTool) string {
	if builtin.Has(t) || remoteURL(t) != "" {
		return ""
	}
	return python.Source(t.ModulePath, python.Env{Getenv: f.opts.Getenv, Folders: f.folders(t)})
}

func (f *Factory) command(t *spec.CommandTool) (tool.Tool, error) {
	container, err := f.container(t, t.Containment)
	if err != nil {
		return nil, err
	}
	run, err := command.New(t, command.Env{Getenv: f.opts.Getenv, Secret: f.secret, Folder: f.folders(t)[0], Supervisor: f.opts.Supervisor, Container: container})
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	return newClientTool(t.Common(), run, 0), nil
}

// container returns what limits the program of a tool; nil for no limits.
func (f *Factory) container(t spec.Tool, declared *spec.Containment) (*containment.Container, error) {
	c, err := f.host.Container(t.EntityID(), declared, f.folders(t)[0])
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.EntityID(), err)
	}
	return c, nil
}

// mcp makes the server of an MCPTool, which Close closes.
func (f *Factory) mcp(t *spec.MCPTool) (tool.Tool, error) {
	options := f.opts.Options
	options.HTTP = f.opts.Servers
	if t.Sampling != nil && f.opts.Sample == nil {
		return nil, fmt.Errorf("tool %s: the model of its sampling is not part of the application", t.ID)
	}
	var container *containment.Container
	if t.Command != "" {
		var err error
		if container, err = f.container(t, t.Containment); err != nil {
			return nil, err
		}
	}
	s, err := mcp.New(t, mcp.Env{Options: options, Getenv: f.opts.Getenv, Folder: f.folders(t)[0], Sample: f.opts.Sample, Ask: f.ask, Container: container, Warn: f.opts.Warn})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers = append(f.servers, s)
	return s, nil
}

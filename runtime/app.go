// Package runtime runs applications: it makes one shared object of every
// memory, model and tool that a document declares, compiles flows, and takes
// rows through them.
//
// An App is safe for concurrent use: any number of runs may go on at once, and
// those of one session meet in its memories.
package runtime

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/factory"
)

// Options says what an App stands on. The zero value runs with in-process memory.
type Options struct {
	Store   memory.Store                       // where all memories live, whatever the document says; nil: where it says
	Default memory.Store                       // where memories live of which the document says nothing; in process where it is nil
	Getenv  func(string) string                // the environment; os.Getenv where it is nil
	HTTP    *http.Client                       // for models and tools; a client of its own where it is nil
	Clients func(id string) tool.ClientHandler // who answers a ClientTool, by its id; nil, or a nil Answer, where nobody does
	Approve tool.Approver                      // asks a person whether an Agent may call a tool that it has to ask for; nil where nobody is there
	Log     func(string)                       // is told, in one line each, what Python functions print; it may be called at any time
	Warn    func(string)                       // is told, in one line each, of stores that may lose conversations; it may be called at any time
	Doubles Mocks                              // who answers in place of models and tools, for tests
}

// Mocks answer in place of what an application declares, so that a test asks
// nobody outside. Where one of them is nil, or gives nil, the declared one is made.
type Mocks struct {
	Model    func(*spec.Model) (model.Chat, error)              // in place of a chat model
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error) // in place of an embedding model
	Tool     func(spec.Tool) tool.Tool                          // in place of a tool
}

// App is an application that can run.
type App struct {
	spec           *spec.Application
	opts           Options
	stores         storeurl.Set // those that the document names
	memories       map[string]*memory.Memory
	places         map[string]memory.Store                                 // where each memory lives, by its id
	models         map[*spec.Model]func() (model.Chat, error)              // with their fallbacks
	alone          map[*spec.Model]func() (model.Chat, error)              // each by itself
	embedders      map[*spec.EmbeddingModel]func() (model.Embedder, error) // with their fallbacks
	aloneEmbedders map[*spec.Model]func() (model.Embedder, error)          // each by itself
	tools          map[string]func() (tool.Tool, error)
	box            *factory.Factory // makes the tools
	databases      databases        // of SQLSource steps
	caches         caches           // of steps that keep their results
}

// New makes an App of a document that was validated without errors. Memories
// are made here; models and tools when a flow that uses them is first run, so
// that credentials are needed only for what runs.
func New(app *spec.Application, opts Options) (*App, error) {
	if opts.Default == nil {
		opts.Default = memory.NewInProcess()
	}
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	a := &App{spec: app, opts: opts, memories: map[string]*memory.Memory{}, places: map[string]memory.Store{},
		models: map[*spec.Model]func() (model.Chat, error){}, alone: map[*spec.Model]func() (model.Chat, error){}, embedders: map[*spec.EmbeddingModel]func() (model.Embedder, error){},
		aloneEmbedders: map[*spec.Model]func() (model.Embedder, error){},
		tools:          map[string]func() (tool.Tool, error){}}
	a.box = a.newToolFactory()
	for _, doc := range documents(app) {
		if err := a.registerEntities(doc); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// registerEntities makes the shared objects of one document.
func (a *App) registerEntities(doc *spec.Document) error {
	for _, m := range doc.Models {
		if e, ok := m.(*spec.EmbeddingModel); ok {
			a.registerEmbedder(e)
		}
		base := m.Base()
		a.registerModel(base)
	}
	for _, t := range doc.Tools {
		a.tools[t.EntityID()] = sync.OnceValues(func() (tool.Tool, error) {
			if kept, ok := t.(*spec.MemoryTool); ok {
				return a.memoryTool(kept)
			}
			if a.opts.Doubles.Tool != nil {
				if double := a.opts.Doubles.Tool(t); double != nil {
					return double, nil
				}
			}
			made, err := a.box.Tool(t)
			return made, withPosition(t, err)
		})
	}
	if doc.Application == nil {
		return nil
	}
	for _, m := range doc.Application.Memories {
		store, err := a.storeOf(doc.Application, m)
		if err != nil {
			return err
		}
		shared, err := memory.New(a.memoryConfig(m), store)
		if err != nil {
			return fmt.Errorf("memory %s: %w", m.ID, err)
		}
		a.memories[m.ID], a.places[m.ID] = shared, store
	}
	return nil
}

// documents lists the application and everything that it references, each with
// its models and tools in Models and Tools.
func documents(app *spec.Application) []*spec.Document {
	all := []*spec.Document{{Application: app, Models: app.Models, Tools: app.Tools}}
	for _, ref := range app.References {
		if ref.Application != nil {
			all = append(all, documents(ref.Application)...)
			continue
		}
		all = append(all, ref)
	}
	return all
}

// memoryConfig is a declared memory of this application. Stores are shared by
// applications, so the application's id goes before the memory's.
func (a *App) memoryConfig(m *spec.Memory) memory.Config {
	cfg := MemoryConfig(m, lazyCounter(Encoding(a.spec, m)))
	cfg.ID = a.spec.ID + "/" + m.ID
	if cfg.Context != nil {
		cfg.Context = promptcontext.New(a.opts.Warn, a.withModels(m, contextBlocks(m))...)
	}
	return cfg
}

// MemoryConfig returns the configuration of a declared memory, with the keys
// that its policy supports: the others have defaults too. Its context blocks
// have no models, so that programs that only read a memory call none.
func MemoryConfig(m *spec.Memory, counter memory.Counter) memory.Config {
	cfg := memory.Config{ID: m.ID, Policy: m.Policy, Limits: m.Limits(), Turns: memory.TurnPolicy(m.Turns), TTL: time.Duration(m.TTL), Counter: counter}
	row, _ := m.Row()
	if row.Supports("context") {
		cfg.Context = promptcontext.New(nil, contextBlocks(m)...)
	}
	if row.Supports("keep_system_first") {
		cfg.KeepSystemFirst = m.KeepSystemFirst
	}
	return cfg
}

// Encoding is the tokenizer that a memory counts with: the one that it names,
// else that of the first model that reads the memory, cl100k_base where there
// is none (memory.md 6).
func Encoding(app *spec.Application, m *spec.Memory) string {
	if m.Tokenizer != "" {
		return m.Tokenizer
	}
	for _, doc := range documents(app) {
		if doc.Application == nil {
			continue
		}
		for _, f := range doc.Application.Flows {
			for _, item := range f.Steps {
				if memoryOf(item.Step) == m && modelOf(item.Step) != nil {
					name, _ := tokenizer.ForModel(modelOf(item.Step).Name())
					return name
				}
			}
		}
	}
	return "cl100k_base"
}

// modelOf is the chat model that a step asks, memoryOf the memory that it
// speaks in or keeps values in; nil where there is none.
func modelOf(s spec.Step) *spec.Model {
	switch s := s.(type) {
	case *spec.LLMInference:
		return s.Model.To.Base()
	case *spec.Agent:
		return s.Model.To.Base()
	}
	return nil
}

func memoryOf(s spec.Step) *spec.Memory {
	switch s := s.(type) {
	case *spec.LLMInference:
		return s.Memory.To
	case *spec.Agent:
		return s.Memory.To
	case *spec.MemoryVariables:
		return s.Memory.To
	case *spec.InvokeTool:
		if t, ok := s.Tool.To.(*spec.MemoryTool); ok {
			return t.Memory.To
		}
	}
	return nil
}

// lazyCounter loads its vocabulary with the first message that it counts.
type lazyCounter string

// Count is the number of tokens of text.
func (c lazyCounter) Count(text string) int {
	enc, err := tokenizer.For(string(c))
	if err != nil { // ForModel names only encodings that are embedded
		return len(text)
	}
	return enc.Count(text)
}

// Spec is the document that the App was made of.
func (a *App) Spec() *spec.Application { return a.spec }

// Memory is the shared memory of that id, nil where none is declared.
func (a *App) Memory(id string) *memory.Memory { return a.memories[id] }

// Model is the shared chat model of that id.
func (a *App) Model(id string) (model.Chat, error) {
	for base, made := range a.models {
		if base.ID == id {
			return made()
		}
	}
	return nil, fmt.Errorf("no model has the id %q", id)
}

// Flow is the declared flow of that id, the first one for an empty id.
func (a *App) Flow(id string) (*spec.Flow, error) {
	flows := a.spec.Flows
	if len(flows) == 0 {
		return nil, fmt.Errorf("application %s has no flows to run", a.spec.ID)
	}
	if id == "" {
		return flows[0], nil
	}
	i := slices.IndexFunc(flows, func(f *spec.Flow) bool { return f.ID == id })
	if i < 0 {
		return nil, &NoFlowError{ID: id, Flows: flowIDs(flows)}
	}
	return flows[i], nil
}

// NoFlowError says that an application has no flow of that id.
type NoFlowError struct {
	ID    string   // what was asked for
	Flows []string // what there is
}

// Error names the flow and those that exist.
func (e *NoFlowError) Error() string {
	return fmt.Sprintf("no flow has the id %q; there are: %s", e.ID, joinNames(e.Flows))
}

func flowIDs(flows []*spec.Flow) []string {
	var ids []string
	for _, f := range flows {
		ids = append(ids, f.ID)
	}
	return ids
}

// Models tells which models a flow uses, itself or in flows that it runs, in
// the order of the steps, each once.
func (a *App) Models(flowID string) ([]model.Info, error) {
	f, err := a.Flow(flowID)
	if err != nil {
		return nil, err
	}
	var infos []model.Info
	for _, m := range modelsOf(f, map[*spec.Flow]bool{}) {
		info, err := a.modelInfo(m)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// modelsOf lists the models of a flow that was not seen before, each once.
func modelsOf(f *spec.Flow, seen map[*spec.Flow]bool) []spec.ModelEntity {
	if seen[f] {
		return nil
	}
	seen[f] = true
	var models []spec.ModelEntity
	for _, item := range f.Steps {
		var found []spec.ModelEntity
		if m := modelOf(item.Step); m != nil {
			found = append(found, m)
		}
		if m := embedderOf(item.Step); m != nil {
			found = append(found, m)
		}
		found = append(found, contextModels(memoryOf(item.Step))...)
		for _, called := range callees(item.Step) {
			found = append(found, modelsOf(called, seen)...)
		}
		for _, m := range found {
			if !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}

// Close gives back what the App holds, its stores included.
func (a *App) Close(context.Context) error {
	a.box.Close()
	return a.closeStores()
}

var _ steps.Slots = (*layout)(nil)

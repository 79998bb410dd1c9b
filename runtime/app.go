// Package runtime runs applications: it makes one shared object of every
// memory, model and tool that a document declares, compiles flows, and takes
// rows through them.
//
// An App is safe for concurrent use by any number of runs. Runs with one session share
// its memories.
package runtime

import (
	"context"
	"fmt"
	"iter"
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
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/factory"
)

// Options configures an App. The zero value runs with in-process memory.
type Options struct {
	Store   memory.Store                       // where all memories are stored, whatever the document says; nil: where it says
	Default memory.Store                       // where memories are stored for which the document names no store; nil: in process
	Getenv  func(string) string                // the environment; nil: os.Getenv
	HTTP    *http.Client                       // for models and tools; nil: the App makes one
	Clients func(id string) tool.ClientHandler // returns the handler of the ClientTool with an id; nil, or a nil handler, if there is none
	Approve tool.Approver                      // decides whether an Agent may call a tool that needs approval; nil if nothing can
	Log     func(string)                       // receives the lines that Python functions print; it may be called at any time
	Warn    func(string)                       // receives warnings, one line each; it may be called at any time
	Mocks   Mocks                              // replace models and tools, for tests
}

// Mocks replace what an application declares, so that a test calls nothing
// outside. If a function is nil or returns nil, the declared object is made.
type Mocks struct {
	Model    func(*spec.Model) (model.Chat, error)              // replaces a chat model
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error) // replaces an embedding model
	Tool     func(spec.Tool) tool.Tool                          // replaces a tool
}

// App is an application that can run.
type App struct {
	spec        *spec.Application
	opts        Options
	stores      storeurl.Set // the stores that the document names
	memories    map[string]*memory.Memory
	memoryStore map[string]memory.Store // by the ids of memories
	models      models
	tools       map[string]func() (tool.Tool, error)
	toolFactory *factory.Factory
	databases   databases // of SQLSource steps
	caches      caches    // of steps with a cache_config
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
	a := &App{spec: app, opts: opts, memories: map[string]*memory.Memory{}, memoryStore: map[string]memory.Store{},
		models: newModels(), tools: map[string]func() (tool.Tool, error){}}
	a.toolFactory = a.newToolFactory()
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
		a.registerModel(m)
	}
	for _, t := range doc.Tools {
		a.tools[t.EntityID()] = sync.OnceValues(func() (tool.Tool, error) { return a.newTool(t) })
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
		a.memories[m.ID], a.memoryStore[m.ID] = shared, store
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

// stepPlans yields the plans of all steps of an application and of what it
// references.
func stepPlans(app *spec.Application) iter.Seq[*spec.StepPlan] {
	return func(yield func(*spec.StepPlan) bool) {
		for _, doc := range documents(app) {
			if doc.Application == nil {
				continue
			}
			for _, f := range doc.Application.Flows {
				for _, s := range f.Plan().Steps {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
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

// Encoding returns the tokenizer that a memory counts with: the one that it names,
// else that of the first model that reads the memory, else cl100k_base.
func Encoding(app *spec.Application, m *spec.Memory) string {
	if m.Tokenizer != "" {
		return m.Tokenizer
	}
	for s := range stepPlans(app) {
		if called := s.Model(); called != nil && s.Conversation() == m {
			name, _ := tokenizer.ForModel(called.Base().Name())
			return name
		}
	}
	return "cl100k_base"
}

// lazyCounter loads its vocabulary when it counts the first message.
type lazyCounter string

// Count returns the number of tokens of text.
func (c lazyCounter) Count(text string) int {
	enc, err := tokenizer.For(string(c))
	if err != nil { // ForModel names only encodings that are embedded
		return len(text)
	}
	return enc.Count(text)
}

// Spec returns the document that the App was made of.
func (a *App) Spec() *spec.Application { return a.spec }

// Memory returns the shared memory with an id, nil if none is declared.
func (a *App) Memory(id string) *memory.Memory { return a.memories[id] }

// Flow returns the declared flow with an id, the first one for an empty id.
func (a *App) Flow(id string) (*spec.Flow, error) {
	flows := a.spec.Flows
	if len(flows) == 0 {
		return nil, fmt.Errorf("application %s has no flows to run", a.spec.ID)
	}
	if id == "" {
		return flows[0], nil
	}
	var ids []string
	for _, f := range flows {
		if f.ID == id {
			return f, nil
		}
		ids = append(ids, f.ID)
	}
	return nil, &NoFlowError{ID: id, Flows: ids}
}

// NoFlowError reports that an application has no flow with an id.
type NoFlowError struct {
	ID    string   // the id
	Flows []string // the ids of its flows
}

// Error names the id and those of the flows.
func (e *NoFlowError) Error() string {
	return fmt.Sprintf("no flow has the id %q; there are: %s", e.ID, joinNames(e.Flows))
}

// Models returns the models that a flow uses, itself or in flows that it runs, in
// the order of the steps, each once.
func (a *App) Models(flowID string) ([]model.Info, error) {
	f, err := a.Flow(flowID)
	if err != nil {
		return nil, err
	}
	var infos []model.Info
	seen := map[spec.ModelEntity]bool{}
	for s := range f.Plan().All() {
		for _, m := range s.Models() {
			if seen[m] {
				continue
			}
			seen[m] = true
			info, err := a.modelInfo(m)
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// MemoryIDs returns the ids of the memories in which the steps of a flow, and of
// the flows that they run, have conversations, in the order of the steps.
func MemoryIDs(f *spec.Flow) []string {
	var ids []string
	for s := range f.Plan().All() {
		if m := s.Conversation(); m != nil && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Close closes what the App has opened, and the stores of its Options.
func (a *App) Close(context.Context) error {
	a.toolFactory.Close()
	return a.closeStores()
}

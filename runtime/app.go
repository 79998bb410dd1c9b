// Package runtime runs applications: it makes one shared object of every
// memory, model and tool that a document declares, compiles flows, and takes
// rows through them.
//
// An App is safe for concurrent use by any number of runs. Runs with one session share
// its memories.
package runtime

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Options configures an App. The zero value runs with in-process memory.
type Options struct {
	Store   memory.Store                       // the store of all memories; nil: the stores in the document
	Default memory.Store                       // the store of memories for which the document names none; nil: in process
	Getenv  func(string) string                // the environment of the user, which chooses servers and identities for credentials; nil: os.Getenv
	Policy  *trust.Policy                      // what the document may reach; nil: everything
	HTTP    *http.Client                       // for models and tools; nil: the App makes one
	Clients func(id string) tool.ClientHandler // returns the handler of the ClientTool with an id; nil, or a nil handler, if there is none
	Approve tool.Approver                      // decides whether an Agent may call a tool that needs approval; nil if nothing can
	Log     func(string)                       // receives the lines that Python functions print; it may be called at any time
	Warn    func(string)                       // receives warnings, one line each; it may be called at any time
	Mocks   Mocks                              // replace models, tools and indexes, for tests
	Audit   func(tool.AuditRecord) error       // records approvals and calls of tools; after an error a call is refused; nil for none
	Cache   bool                               // cache the vectors of embedding models on disk, unless a model disables it

	Parts Parts // what the document can name

	DocumentEnv func(string) string // the environment of the document: also the .env files of one that is restricted; nil: Getenv

	Redactor *redact.Redactor // replaces secrets in errors and in results of models and tools; the App adds secrets that it reads; nil: the App makes one

	Supervisor *subprocess.Supervisor // starts the programs of tools; nil: process groups

	Flex bool // requests the tier flex for chat models that have it

	Observer steps.Observer // receives the operations of all runs, for traces and metrics; nil for none
}

// Mocks replace what an application declares, so that a test calls nothing
// outside. If a function is nil or returns nil, the declared object is made.
type Mocks struct {
	Model    func(*spec.Model) (model.Chat, error)              // replaces a chat model
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error) // replaces an embedding model
	Tool     func(spec.Tool) tool.Tool                          // replaces a tool
	Index    func(spec.Index) (index.Index, error)              // replaces an index

	// Wrap… change what was made, so that its calls can be recorded.
	WrapModel    func(*spec.Model, model.Chat) (model.Chat, error)
	WrapEmbedder func(*spec.EmbeddingModel, model.Embedder) (model.Embedder, error) // changes an embedding model
	WrapTool     func(spec.Tool, tool.Tool) tool.Tool                               // changes a tool

	NoStepCache bool   // results of steps are not cached
	Fixtures    string // the folder in which all files of the document are; empty for their places

	HTTP *http.Client // for readers, rerankers and tools; MCP servers and models use the client of the Options
}

// serviceHTTP returns the HTTP client of readers, rerankers and tools.
func (a *App) serviceHTTP() *http.Client { return cmp.Or(a.opts.Mocks.HTTP, a.opts.HTTP) }

// App is an application that can run.
type App struct {
	spec        *spec.Application
	opts        Options
	stores      storeurl.Set // the stores that the document names
	memories    map[string]*memory.Memory
	memoryStore map[string]memory.Store     // by the ids of memories
	searchers   map[string]*search.Searcher // by the ids of memories
	state       store.Application           // see State
	models      *models
	tools       map[string]func() (tool.Tool, error)
	toolFactory toolFactory
	databases   databases // of SQLSource steps
	indexes     indexes
	rankers     rankers     // of Reranker and BedrockReranker steps
	caches      caches      // of steps with a cache_config
	audit       *tool.Audit // nil for none

	secretManager secretManager
}

// Spec returns the document that the App was made of.
func (a *App) Spec() *spec.Application { return a.spec }

// Memory returns the shared memory with an id, nil if none is declared.
func (a *App) Memory(id string) *memory.Memory { return a.memories[id] }

// Searcher returns what searches the memory with an id, nil if none is declared.
func (a *App) Searcher(id string) *search.Searcher { return a.searchers[id] }

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
	return fmt.Sprintf("no flow has the id %q; there are: %s", e.ID, textfmt.List(e.Flows))
}

// folderOf returns the folder of the document that declares something, as Folder does.
func folderOf(n spec.Node) string {
	file := n.Position().Span().File
	if file == nil || strings.Contains(file.Path, "://") {
		return ""
	}
	return filepath.Dir(file.Path)
}

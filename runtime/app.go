// Package runtime runs applications: it makes one shared object of every
// memory, model and tool that a document declares, compiles flows, and takes
// rows through them.
//
// An App is safe for concurrent use by any number of runs. Runs with one session share
// its memories.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/index"
	indexstore "github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/internal/secrets"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/internal/waves"
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
	turnWork    turnWork    // what memories do after turns
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

// Parts are the tables of what a document can name: what implements providers, stores and
// addresses. A nil table is that of the core.
type Parts struct {
	Models    provider.Clients
	Stores    storeurl.Openers
	Indexes   indexstore.Builders
	Databases sqldb.Drivers
	Buckets   remotefs.Buckets
	Formats   records.Codecs  // of files with rows, besides those of the core
	AWS       awsauth.Builder // signs with AWS identities; nil for none
	Language  *spec.Language  // has the declarations of parts that the program adds; nil for none

	inBatches func(m *spec.Model, api wire.Batches, next *http.Client) *http.Client // of the context; nil to make all calls at once
	isBatched func(ctx context.Context) bool                                        // whether a call is made so; nil for all
	window    string                                                                // of calls in the background; empty for batches
}

// CoreParts returns the tables of the core. The caller may add to them.
func CoreParts() Parts {
	return Parts{Models: provider.Core(), Stores: storeurl.Core(), Indexes: indexstore.Core(), Databases: sqldb.Core(), Buckets: remotefs.Buckets{}}
}

// Clone returns a copy to which parts can be added. Nil tables become those of the core.
func (p Parts) Clone() Parts {
	core := CoreParts()
	clone := Parts{Models: maps.Clone(p.Models), Stores: maps.Clone(p.Stores), Indexes: p.Indexes, Databases: p.Databases, Buckets: p.Buckets, Formats: p.Formats, AWS: p.AWS, Language: p.Language.Clone()}
	if clone.Models == nil {
		clone.Models = core.Models
	}
	if clone.Stores == nil {
		clone.Stores = core.Stores
	}
	return clone
}

type partsKey struct{}

// WithParts returns a context of a program with these parts.
func WithParts(ctx context.Context, p Parts) context.Context {
	ctx = sqldb.WithDrivers(remotefs.WithBuckets(records.WithCodecs(ctx, p.Formats), p.Buckets), p.Databases)
	return context.WithValue(spec.WithLanguage(ctx, p.Language), partsKey{}, p)
}

// PartsOf returns the parts of the program of a context; those of the core without WithParts.
func PartsOf(ctx context.Context) Parts {
	p, _ := ctx.Value(partsKey{}).(Parts)
	p.inBatches, p.isBatched, p.window = waves.ClientOf(ctx), waves.Chosen(ctx), waves.WindowOf(ctx)
	return p
}

// models are the models of an App.
type models struct {
	chat      pool[model.Chat]
	embedders pool[model.Embedder]
	forms     model.SchemaForms // what the servers of the App have accepted
	traffic   model.Traffic     // the limits of the App's calls
}

// toolFactory is a *factory.Factory. Its type would be compiled in each package that uses an App.
type toolFactory interface {
	Tool(t spec.Tool) (tool.Tool, error) // makes a tool
	Source(t spec.Tool) string           // the file that a tool runs; empty for none
	Close()                              // ends what the tools have started
}

// databases has the connections of the application's SQLSource steps. The zero
// value is empty. It is safe for concurrent use.
type databases struct {
	mu   sync.Mutex
	open map[*spec.SQLSource]*sqldb.Source
}

// indexes are the indexes of an App by their ids, opened at first use. An index that could
// not be opened is tried again at the next use.
type indexes struct {
	mu   sync.Mutex
	open map[string]index.Index
}

// rankers has what the application's rerankers share: one ranker for each step, which all
// runs use, and the connections to services. The zero value is empty. It is safe for
// concurrent use.
type rankers struct {
	mu   sync.Mutex
	made map[spec.Step]rerank.Ranker
	http *http.Client // made when the first ranker is
}

// caches are the caches of an App by their folders, opened at first use, and the cache in the
// shared store.
type caches struct {
	mu     sync.Mutex
	open   map[string]*stepcache.Cache
	shared *stepcache.Cache // nil before its first use
}

// secretManager is the reader of the application's secrets, made at the first use.
type secretManager struct {
	once   sync.Once
	reader *secrets.Reader
	err    error
}

// pool has the models of one kind, each made when it is first used.
type pool[M any] struct {
	single map[*spec.Model]func() (M, error) // each by itself: steps and fallbacks share it with its rate limit
	whole  map[*spec.Model]func() (M, error) // with fallbacks
}

func newModels() *models {
	return &models{chat: newPool[model.Chat](), embedders: newPool[model.Embedder]()}
}

func newPool[M any]() pool[M] {
	return pool[M]{single: map[*spec.Model]func() (M, error){}, whole: map[*spec.Model]func() (M, error){}}
}

// minConnections is how many idle connections to one server are kept open at least.
const minConnections = 64

// connections returns how many idle connections to one server are kept open: as many as
// the steps of the application may use at once, because further ones would be closed
// after each call.
func connections(app *spec.Application) int {
	most := minConnections
	for _, doc := range app.Documents() {
		if doc.Application == nil {
			continue
		}
		for _, f := range doc.Application.Flows {
			for _, s := range f.Plan().Steps {
				if c, ok := s.Step.(interface{ Workers() int }); ok {
					most = max(most, c.Workers())
				}
			}
		}
	}
	return most
}

// policyTransport lets the requests of an application carry its policy, also those with the
// context of a library.
type policyTransport struct {
	policy *trust.Policy
	next   http.RoundTripper
}

// RoundTrip sends a request if the policy allows its server.
func (t *policyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.policy.Address(req.URL); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(req.WithContext(trust.With(req.Context(), t.policy)))
}

// Over returns the transport over another one, which checks the addresses of a tool.
func (t *policyTransport) Over(next http.RoundTripper) http.RoundTripper {
	return &policyTransport{policy: t.policy, next: next}
}

// Policy returns what the document may reach; nil if there is no limit.
func (a *App) Policy() *trust.Policy { return a.opts.Policy }

// background returns the context of what is opened for the document outside of a run.
func (a *App) background() context.Context {
	return trust.With(WithParts(context.Background(), a.opts.Parts), a.opts.Policy)
}

// secret returns the text of a secret, from the document, the environment or the
// application's secret manager. Its errors never include the text.
func (a *App) secret(s spec.Secret) (text string, err error) {
	if s.Ref == nil {
		return s.Reveal(), nil
	}
	declared := a.spec.SecretManager
	if declared == nil {
		return "", fmt.Errorf("secret %s needs a secret_manager", s.Ref.SecretName)
	}
	m := &a.secretManager
	m.once.Do(func() {
		m.reader, m.err = secrets.New(declared, secrets.Options{Getenv: a.Getenv, Policy: a.opts.Policy, AWS: a.opts.Parts.AWS})
	})
	if m.err != nil {
		return "", m.err
	}
	text, err = m.reader.Read(a.background(), *s.Ref) // a read has a time limit
	a.opts.Redactor.Add(text)
	return text, err
}

// Secret returns the text of a secret of the document. Its errors never include the
// text.
func (a *App) Secret(s spec.Secret) (string, error) { return a.secret(s) }

// Getenv returns a variable of the environment that the document sees.
func (a *App) Getenv(name string) string { return a.opts.Policy.Getenv(a.opts.DocumentEnv)(name) }

// Package sessions is the REST interface of conversations: to list, read, rename,
// fork, rewind, export, import and delete them. A session belongs to the principal
// that opened it; for others it does not exist.
//
// Messages are in the memories of the application. A session has one small record
// in the state store of the server, with title, flow and time of creation, which is
// written when the session begins and when it is renamed.
//
//	sessions.go   Options, Service and its routes
//	request.go    parameters and bodies of requests, and errors
//	record.go     the record of a session, and the list of the newest ones
//	session.go    a session as JSON; list, read, rename, delete
//	branch.go     fork and rewind
//	revise.go     editing and deleting a message
//	transfer.go   export and import
//	messages.go   the history, as messages of the AI SDK
//	search.go     messages that fit a text
//	parts.go      the parts of a message
//	context.go    what the next call of a model sends
package sessions

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
	Memory(id string) *memory.Memory
	Searcher(id string) *search.Searcher // of a memory
	SessionsOf(session string) []string  // a session and those that tools have in it

	// Effects returns the calls of tools in a turn and later ones that rewinding does not undo.
	Effects(ctx context.Context, m *memory.Memory, session string, turn int64) ([]runtime.Effect, error)
}

// Options configures a Service.
type Options struct {
	App   func() App               // the application that is served now; required
	State func() store.Application // has the records of sessions; required

	Running func(ctx context.Context, session string) (run string, busy bool, err error) // whether a stored session is in use, and the id of the run that uses it, if it has one; nil: it is not
	OnFork  func(ctx context.Context, from, to string) error                             // copies it; nil: nothing
	Test    TestMaker                                                                    // nil: no tests are made
	Allowed func(flow *spec.Flow, caller access.Principal) bool                          // whether a caller may use a flow; nil: access.Allowed
	Wait    time.Duration                                                                // how long a change waits for an active turn; 0: 10 seconds
	Import  int64                                                                        // the most bytes of an imported transcript; 0: 32 MiB
	Log     *slog.Logger                                                                 // failures of the server; nil: slog.Default
	Now     func() time.Time                                                             // the clock; nil: time.Now
}

// TestMaker makes a test of a stored session of a memory, up to a turn, 0 for the last one: the text of a test file. An error is about the conversation.
type TestMaker func(ctx context.Context, app App, memory, session string, turn int64) (string, error)

const (
	defaultWait   = 10 * time.Second
	defaultImport = 32 << 20
)

// Service serves /sessions and what is below it. It is safe for concurrent use.
type Service struct {
	opts Options
	mux  *http.ServeMux
}

// New returns a Service.
func New(o Options) *Service {
	if o.Allowed == nil {
		o.Allowed = access.Allowed
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.Import == 0 {
		o.Import = defaultImport
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{opts: o, mux: http.NewServeMux()}
	s.routes()
	return s
}

// endpoint answers one kind of request. An error that is not a *problem.Problem is
// a failure of the server.
type endpoint func(w http.ResponseWriter, r *http.Request) error

func (s *Service) routes() {
	one := map[string]endpoint{http.MethodGet: s.get, http.MethodPatch: s.rename, http.MethodDelete: s.remove}
	imported := namedSession("import", one) // a session may have this id
	imported[http.MethodPost] = s.importSession
	searched := namedSession("messages", one)
	searched[http.MethodGet] = s.searchAll
	for path, methods := range map[string]map[string]endpoint{
		"/sessions":                         {http.MethodGet: s.list},
		"/sessions/import":                  imported,
		"/sessions/messages":                searched,
		"/sessions/{id}":                    one,
		"/sessions/{id}/messages":           {http.MethodGet: s.messages},
		"/sessions/{id}/messages/{message}": {http.MethodPatch: s.edit, http.MethodDelete: s.removeMessage},
		"/sessions/{id}/context":            {http.MethodGet: s.context},
		"/sessions/{id}/fork":               {http.MethodPost: s.fork},
		"/sessions/{id}/rewind":             {http.MethodPost: s.rewind},
		"/sessions/{id}/export":             {http.MethodGet: s.export},
		"/sessions/{id}/test":               {http.MethodGet: s.test},
	} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, methods) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, problem.New(http.StatusNotFound, "not_found", "there is no such page"))
	})
}

// namedSession returns the endpoints of a session whose id a path has as a name.
func namedSession(id string, endpoints map[string]endpoint) map[string]endpoint {
	named := map[string]endpoint{}
	for method, serve := range endpoints {
		named[method] = func(w http.ResponseWriter, r *http.Request) error {
			r.SetPathValue("id", id)
			return serve(w, r)
		}
	}
	return named
}

// ServeHTTP answers a request whose context has the caller (access.WithPrincipal).
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

// Package host is what the protocols of a server share: the application that is served,
// its runs, and how errors are answered.
package host

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Host is the server that a protocol belongs to. It is safe for concurrent use.
type Host struct {
	Runs           *runs.Manager
	Current        func() *Application                             // what is served now; a request uses one version of it
	Fail           func(http.ResponseWriter, *http.Request, error) // answers with a problem, and logs errors of the server
	Heartbeat      time.Duration                                   // between comments in streams without events
	Log            *slog.Logger
	State          func() store.Application   // the records of the application
	Inputs         *Inputs                    // first values of session inputs
	Authentication string                     // which credentials clients need: none, key or oidc
	Version        string                     // of the program
	Address        func(*http.Request) string // of the server, as the client of a request knows it

	// Fetch returns the content of a file that a client names by its address. Its error is
	// a *problem.Problem.
	Fetch func(ctx context.Context, url string) (data []byte, mediaType string, err error)
	// Record adds a conversation of a flow to the sessions of its owner. session is the stored
	// id, message the newest message of the user.
	Record func(ctx context.Context, flow, session, message string) error
	// Failure returns the problem of a run that could not process its rows, nil for none.
	Failure func(*runs.Run) *problem.Problem
}

// Application is one version of what is served.
type Application struct {
	App   *runtime.App
	Flows []*schema.Flow // in document order

	byID    map[string]*schema.Flow
	openAPI func() []byte // the description of all flows
}

// NewApplication returns the contracts of an application.
func NewApplication(app *runtime.App) *Application {
	a := &Application{App: app, byID: map[string]*schema.Flow{}}
	for _, f := range app.Spec().Flows {
		c := schema.NewFlow(f)
		a.Flows = append(a.Flows, c)
		a.byID[f.ID] = c
	}
	a.openAPI = sync.OnceValue(func() []byte { return schema.OpenAPI(app.Spec(), a.Flows) })
	return a
}

// OpenAPI returns the description for a principal: of the flows that it may call.
func (a *Application) OpenAPI(p access.Principal) []byte {
	hidden := func(f *schema.Flow) bool { return !access.Allowed(f.Spec, p) }
	if !slices.ContainsFunc(a.Flows, hidden) {
		return a.openAPI()
	}
	return schema.OpenAPI(a.App.Spec(), slices.DeleteFunc(slices.Clone(a.Flows), hidden))
}

// Flow returns the flow with an id that a principal may call. The error is a
// *problem.Problem.
func (a *Application) Flow(p access.Principal, id string) (*schema.Flow, error) {
	f := a.byID[id]
	if f == nil {
		return nil, problem.New(http.StatusNotFound, "unknown_flow", "there is no flow %q%s", id, diag.DidYouMean(id, a.IDs(p)))
	}
	if !access.Allowed(f.Spec, p) {
		return nil, problem.New(http.StatusForbidden, "not_allowed", "the caller may not call flow %s", id)
	}
	return f, nil
}

// IDs returns the ids of the flows that a principal may call.
func (a *Application) IDs(p access.Principal) []string {
	var ids []string
	for _, f := range a.Flows {
		if access.Allowed(f.Spec, p) {
			ids = append(ids, f.ID())
		}
	}
	return ids
}

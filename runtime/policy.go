package runtime

import (
	"context"
	"net/http"

	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

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

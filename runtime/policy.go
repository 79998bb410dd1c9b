package runtime

import (
	"context"
	"net/http"

	"github.com/qtype-dev/qtype/internal/trust"
)

// maxConcurrentCalls is how many connections to one server are kept open.
const maxConcurrentCalls = 64

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
	return trust.With(context.Background(), a.opts.Policy)
}

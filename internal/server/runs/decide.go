package runs

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// mayAnswer reports whether a caller may answer a request of the run.
func (r *Run) mayAnswer(p access.Principal, req *Request) bool {
	isCaller := p.Name == r.Owner
	if req.Kind != Approval {
		return isCaller
	}
	return spec.MayDecide(req.By, p.Roles, isCaller)
}

// requested returns the request with an id that waits for an answer. What it returns is checked: a
// request that opens later needs another answer.
func (r *Run) requested(id string) (*Request, error) {
	r.requests.mu.Lock() // an observer replaces the requests
	o, err := r.requests.find(id)
	r.requests.mu.Unlock()
	if err == nil {
		return o.Request, nil
	}
	if r.record != nil && slices.ContainsFunc(r.record.answers(), func(given *Answer) bool { return given.ID == id }) {
		err = ErrAnswered
	}
	return nil, err
}

// authorize returns a *problem.Problem if the caller of ctx may not answer a request, and names the
// caller in the answer.
func (r *Run) authorize(ctx context.Context, req *Request, a *Answer) error {
	p := access.PrincipalOf(ctx)
	a.By = p.Name
	if !r.mayAnswer(p, req) {
		return problem.New(http.StatusForbidden, "may_not_decide", "you may not decide about this call of %s: %s", req.Tool, req.deciders())
	}
	return nil
}

// deciders names who may decide about a call.
func (r *Request) deciders() string {
	var roles []string
	for _, entry := range r.By {
		if role, ok := strings.CutPrefix(entry, spec.RolePrefix); ok {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return "the caller who has started the run decides"
	}
	return "it waits for someone with the role " + strings.Join(roles, " or ")
}

// Undecided is a request that waits for people with a role.
type Undecided struct {
	Run     *Run
	Request *Request
}

// Undecided returns the requests of all callers that a caller may decide by a role, the newest runs
// first. Those of other servers are read from the store.
func (m *Manager) Undecided(ctx context.Context, app *runtime.App, p access.Principal) ([]Undecided, error) {
	if len(p.Roles) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	local := map[string]*Run{}
	for id, r := range m.runs {
		local[id] = r
	}
	m.mu.Unlock()
	all := make([]*Run, 0, len(local))
	for _, r := range local {
		all = append(all, r)
	}
	if m.opts.State != nil {
		for h, err := range m.opts.State().Records(appstate.Unfinished).List(ctx, store.RecordQuery{}) {
			if err != nil {
				return nil, err
			}
			if local[h.ID] != nil {
				continue
			}
			r, err := m.load(ctx, app, h.ID)
			if err != nil {
				return nil, err
			}
			if r != nil {
				all = append(all, r)
			}
		}
	}
	var found []Undecided
	for _, r := range newestFirst(all, nil) {
		for _, req := range r.requests.pending() {
			if req.Kind == Approval && spec.MayDecide(req.By, p.Roles, false) {
				found = append(found, Undecided{r, req})
			}
		}
	}
	return found, nil
}

// FindUndecided returns the run with an id if it is the caller's, or has a request that the caller may
// decide by a role; otherwise nil.
func (m *Manager) FindUndecided(ctx context.Context, app *runtime.App, p access.Principal, id string) (*Run, error) {
	r, err := m.find(ctx, app, id)
	if r == nil || r.Owner != p.Name && !slices.ContainsFunc(r.requests.pending(), func(req *Request) bool { return r.mayAnswer(p, req) }) {
		return nil, err
	}
	return r, err
}

package runs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/redact"
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

// Attach is Find for a client that follows the run: a run that no process has continues
// in this one, and the events of a run of another process, as far as they are stored,
// are added while ctx lasts. They are requests, answers, results and the end.
func (m *Manager) Attach(ctx context.Context, app *runtime.App, owner, id string) (*Run, error) {
	r, err := m.Find(ctx, app, owner, id)
	if r == nil || err != nil || m.IsLocal(r) || r.State().Status.Ended() {
		return r, err
	}
	taken, err := m.resume(ctx, app, id, time.Time{})
	if err != nil {
		return nil, err
	}
	if taken {
		return m.Find(ctx, app, owner, id)
	}
	o := &observer{manager: m, run: r, app: app, answered: map[string]bool{}}
	o.begin()
	go o.follow(ctx)
	return r, nil
}

// AttachWaiting is Attach for an answer: it returns a run that waits for its client, nil if it does
// not. A run that continues in this process repeats what it has done before.
func (m *Manager) AttachWaiting(ctx context.Context, app *runtime.App, owner, id string) (*Run, error) {
	r, err := m.Find(ctx, app, owner, id)
	if r != nil && err == nil && !m.IsLocal(r) {
		if r, err = m.Attach(ctx, app, owner, id); r != nil && err == nil && m.IsLocal(r) {
			_, err = r.Settle(ctx)
		}
	}
	if err != nil || r == nil || r.State().Status != Waiting {
		return nil, err
	}
	return r, nil
}

// errDeleted ends the snapshot of a run that is not stored any more.
var errDeleted = &redact.PublicError{Err: errors.New("the run was deleted")}

// observer adds to a snapshot what another process stores about its run.
type observer struct {
	manager  *Manager
	run      *Run
	app      *runtime.App
	answered map[string]bool // ids of the requests whose answer was reported
}

// begin reports the answers and requests of the snapshot.
func (o *observer) begin() {
	o.reportAnswers(o.run.record)
	for _, req := range o.run.requests.pending() {
		o.run.add(requestEvent(RequestOpened, req), nil)
	}
}

func (o *observer) reportAnswers(rec *record) {
	for _, a := range rec.answers() {
		if !o.answered[a.ID] {
			o.answered[a.ID] = true
			o.run.add(requestEvent(RequestAnswered, &Request{ID: a.ID, Decider: a.By}), nil)
		}
	}
}

// follow reads the stored run until it has ended, or ctx ends.
func (o *observer) follow(ctx context.Context) {
	poll := time.NewTicker(pollPeriod)
	defer poll.Stop()
	for !o.run.State().Status.Ended() {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		if err := o.read(ctx); err != nil && ctx.Err() == nil {
			o.manager.opts.Log.Warn("a stored run could not be read", "run", o.run.ID, "error", err)
		}
	}
}

// read reports what is new. A run whose process has ended continues in this one.
func (o *observer) read(ctx context.Context) error {
	if _, err := o.manager.resume(ctx, o.app, o.run.ID, time.Time{}); err != nil {
		return err
	}
	now, err := o.manager.load(ctx, o.app, o.run.ID)
	if err != nil {
		return err
	}
	if now == nil {
		o.run.finish(errDeleted)
		return nil
	}
	o.reportAnswers(now.record)
	o.run.requests.replace(now.requests, func(req *Request) { o.run.add(requestEvent(RequestOpened, req), nil) })
	state := now.State()
	if !state.Status.Ended() {
		return nil
	}
	events := now.events.first(now.events.n)
	last := len(events) - 1
	for _, ev := range events[1:last] { // the first one is the start
		o.run.add(ev, nil)
	}
	o.run.add(events[last], func(s *State) { *s = state })
	o.run.err = now.err
	close(o.run.finished)
	return nil
}

// replace takes over the open requests of others, and reports new ones.
func (q *requests) replace(others *requests, opened func(*Request)) {
	q.mu.Lock()
	known := q.open
	q.open, q.order = others.open, others.order
	q.mu.Unlock()
	for _, req := range others.pending() {
		if known[req.ID] == nil {
			opened(req)
		}
	}
}

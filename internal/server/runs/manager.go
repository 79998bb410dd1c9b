package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Options configures a Manager. The zero value is ready to use.
type Options struct {
	// State returns the records of the application, which keep the runs that survive a restart; nil: none does.
	State func() store.Application

	MaxActive  int           // runs at once, without those that wait for their clients; 0: 20,000
	MaxHeld    int           // runs at once, with those; 0: twice MaxActive
	MaxEvents  int           // events of ended runs that are kept for clients that come back; 0: 200,000
	MaxBytes   int           // size of the ended runs that are kept, in about bytes; 0: 64 MiB
	Retain     time.Duration // how long an ended run can be found, if there is room; 0: 24 hours
	Expire     time.Duration // how long a stored run can be found; 0: 24 hours
	AnswerWait time.Duration // how long a stored run may wait for an answer; 0: 7 days
	MaxWait    time.Duration // how long a run waits for the result of a tool that its client offers; 0: 1 hour
	Log        *slog.Logger  // nil: nothing is logged

	// Engine runs the rows; nil: the App of this process does.
	Engine Engine

	// Batches makes the calls of models of runs with Start.Batch; nil if there are none. The Manager serves it.
	Batches *waves.Shared

	// Lease returns a context in which turns have a lease; see memory.WithLease. nil: that of memory.WithServerLease.
	Lease func(ctx context.Context, work string, lost func()) context.Context

	// Context returns the context of a run, for example with observers; nil: as it is.
	Context func(ctx context.Context, run string) context.Context
}

// Start describes a run.
type Start struct {
	App       *runtime.App
	Flow      *spec.Flow
	Owner     string           // name of the principal
	Session   string           // the stored session
	Rows      []map[string]any // the inputs of each row
	Events    bool             // the events of steps are recorded, and models stream
	History   []chat.Message   // the conversation so far, if the client keeps it; nil: the memory of the session
	Stateless bool             // use History, even if it is empty, and store nothing
	Kept      []runtime.Effect // calls of tools in turns that were undone for the run, which are not undone
	Tools     []CallerTool     // tools that the client offers and runs

	Instructions *steps.Instructions // of the client, for models; nil for none

	Batch    bool   // calls of models are made in batches of their providers; the run is durable
	Durable  bool   // the run survives a restart
	Digest   string // identifies the request: Begin with the ID of an existing run needs the same
	Detached bool   // the run continues without a client
	ID       string // the id; empty: a new one. Of a durable run that exists, Begin returns the run
}

// CallerTool is a tool that the client of a run offers to the models.
type CallerTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  []byte `json:"parameters,omitempty"` // JSON schema of the arguments
}

// conversation is a session of a flow.
type conversation struct{ flow, session string }

func (r *Run) conversation() conversation { return conversation{r.Flow.ID, r.Session} }

// Errors of Begin.
var (
	ErrBusy   = errors.New("too many runs are active")
	ErrClosed = errors.New("the server is shutting down")
)

// Manager has the runs of a server. It is safe for concurrent use.
type Manager struct {
	opts  Options
	owner string // identifies this process in leases
	clock store.ServerClock
	apps  appTable

	mu      sync.Mutex
	runs    map[string]*Run
	unknown map[string]bool         // stored runs of which the log says that no server here knows their flow
	turns   map[conversation][]*Run // the active runs of each conversation, the newest last
	ended   []*Run                  // in the order in which they ended
	kept    int                     // events of the ended runs
	bytes   int                     // about the size of the ended runs
	active  int
	closed  bool

	resuming sync.Mutex // held by resumeLately
	resumed  time.Time  // when it has resumed runs last

	background sync.WaitGroup // maintenance, and the runs until their end is stored
	stop       context.CancelFunc
}

// NewManager returns a Manager. Close ends it.
func NewManager(o Options) *Manager {
	if o.MaxActive == 0 {
		o.MaxActive = 20_000 // as many as access control accepts requests
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 2 * o.MaxActive
	}
	if o.AnswerWait == 0 {
		o.AnswerWait = 7 * 24 * time.Hour
	}
	if o.MaxEvents == 0 {
		o.MaxEvents = 200_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Retain == 0 {
		o.Retain = 24 * time.Hour
	}
	if o.Expire == 0 {
		o.Expire = 24 * time.Hour
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Hour
	}
	if o.Lease == nil {
		o.Lease = memory.WithServerLease
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Manager{opts: o, owner: rand.Text(), runs: map[string]*Run{}, unknown: map[string]bool{}, turns: map[conversation][]*Run{}, apps: appTable{users: map[*runtime.App]int{}}}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	if o.State != nil {
		m.background.Go(func() { m.maintain(ctx) })
		m.background.Go(func() { m.keepClean(ctx) })
		if o.Batches != nil {
			o.Batches.Run.Report = func(line string) { o.Log.Info(line) }
			m.background.Go(func() { o.Batches.Serve(ctx, func(id string) (bool, error) { return m.isOpen(ctx, id) }) })
		}
	}
	return m
}

// Begin starts a run, or returns the run that has the id. ctx gives values, but its end
// does not end the run.
func (m *Manager) Begin(ctx context.Context, s Start) (*Run, error) {
	r := m.newRun(&s)
	existing, err := m.claim(ctx, r)
	if err != nil || existing != nil {
		return existing, err
	}
	if s.Durable && m.opts.State != nil {
		if existing, err = m.create(ctx, r, &s); err != nil || existing != nil {
			m.forget(r)
			return existing, err
		}
	}
	m.launch(ctx, r, &s)
	return r, nil
}

// claim registers a run, or returns the one that has its id. If that one is being stored,
// it waits until the outcome is known.
func (m *Manager) claim(ctx context.Context, r *Run) (existing *Run, err error) {
	for {
		existing, err = m.register(r)
		if err != nil || existing == nil {
			return nil, err
		}
		if begins, err := existing.awaitBegin(ctx); err != nil || begins {
			return existing, err
		}
	}
}

func (m *Manager) newRun(s *Start) *Run {
	r := &Run{ID: s.ID, Flow: s.Flow, Session: s.Session, Owner: s.Owner, Created: time.Now().UTC(), detached: s.Detached, digest: s.Digest,
		app: s.App, log: m.opts.Log, requests: newRequests(), finished: make(chan struct{}), decided: make(chan struct{})}
	if r.ID == "" {
		r.ID = "run_" + rand.Text()
	}
	r.state = State{Status: Running, Updated: r.Created}
	if s.Batch {
		r.batches = m.opts.Batches
	}
	return r
}

// register adds a run to those that can be found, unless one has its id: it returns that.
func (m *Manager) register(r *Run) (existing *Run, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.runs[r.ID]; other != nil {
		if other.Owner != r.Owner || other.digest != r.digest {
			return nil, ErrDigest
		}
		return other, nil
	}
	switch {
	case m.closed:
		return nil, ErrClosed
	case m.full():
		return nil, ErrBusy
	}
	m.active++
	m.runs[r.ID] = r
	m.turns[r.conversation()] = append(m.turns[r.conversation()], r)
	m.apps.use(r.app)
	return nil, nil
}

// full reports whether no run can start; the caller holds the lock. Runs that wait for
// their clients or for batches, maybe for days, do not prevent others.
func (m *Manager) full() bool {
	if m.active < m.opts.MaxActive {
		return false
	}
	waiting := 0
	for _, r := range m.runs {
		if r.batches != nil || r.State().Status == Waiting {
			waiting++
		}
	}
	return m.active >= m.opts.MaxHeld || m.active-waiting >= m.opts.MaxActive
}

// forget removes a run that was registered and did not start.
func (m *Manager) forget(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deactivate(r)
	if m.runs[r.ID] == r {
		delete(m.runs, r.ID)
	}
	m.apps.release(r.app)
	close(r.decided)
	close(r.finished)
}

// launch runs the flow on a new goroutine.
func (m *Manager) launch(ctx context.Context, r *Run, s *Start) {
	ctx, cancel := r.begin(ctx)
	if m.opts.Context != nil {
		ctx = m.opts.Context(ctx, r.ID)
	}
	ask := r.asker(s.Tools, m.opts.MaxWait)
	r.add(Event{Type: RunStarted, Kept: s.Kept}, nil)
	m.background.Go(func() {
		defer cancel(nil)
		if m.opts.Engine == nil {
			m.end(r, r.process(m.opts.Lease(ctx, r.ID, func() { r.end(memory.ErrSuspended) }), s, ask))
			return
		}
		release, err := r.delegate(ctx, m.opts.Engine, s, ask)
		m.end(r, err)
		release()
	})
}

// process runs the flow and returns the error that ended it.
func (r *Run) process(ctx context.Context, s *Start, ask Ask) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errInternal
		}
	}()
	if r.batches != nil {
		ctx = r.batches.Begin(ctx, r.ID, rowsAtOnce(s))
	}
	ctx = tool.WithHandlers(s.Context(ctx, ask), tool.Handlers{Approve: ask.approve, Client: func(string) tool.ClientHandler { return ask.RunClientTool }})
	var opts []runtime.RunOption
	if s.Events {
		opts = append(opts, runtime.WithEvents(r.hear, kinds...))
	} else if r.batches != nil {
		opts = append(opts, runtime.WithEvents(r.count, steps.EventUsage))
	}
	if r.record != nil {
		ctx = steps.WithCallLog(ctx, r.record)
		opts = append(opts, runtime.WithRunID(r.ID))
	}
	for res, err := range r.app.Run(ctx, r.Flow.ID, r.inputs(s.Rows), opts...) {
		if err == nil && runtime.Suspended(res) { // the file of the batches is not usable
			err = r.batches.Run.Failed()
		}
		if err != nil {
			return err
		}
		r.addResult(res)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

var errInternal = errors.New("internal error")

// inputs yields the rows as inputs of the flow.
func (r *Run) inputs(rows []map[string]any) iter.Seq[runtime.Input] {
	return func(yield func(runtime.Input) bool) {
		for _, values := range rows {
			r.mu.Lock()
			r.state.Rows.Read++
			r.mu.Unlock()
			if !yield(runtime.Input{Values: values, Session: r.Session}) {
				return
			}
		}
	}
}

// end stores that a run has ended before its clients learn it, and keeps the run for a
// while. A suspended run has not ended: another process may continue it.
func (m *Manager) end(r *Run, err error) {
	suspended := errors.Is(err, memory.ErrSuspended)
	if r.record != nil && !suspended && errors.Is(m.settle(r, err), errTaken) {
		suspended, err = true, memory.ErrSuspended // the result is that of the other process
	}
	r.finish(err)
	if r.record != nil && suspended {
		m.release(r)
	}
	if r.batches != nil && !suspended {
		if err := r.batches.End(r.ID); err != nil {
			m.opts.Log.Error("the calls of a run could not be forgotten", "run", r.ID, "error", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deactivate(r)
	m.apps.release(r.app)
	if suspended {
		delete(m.runs, r.ID)
		return
	}
	r.mu.Lock()
	r.size = sizeOf(&r.events)
	n := r.events.n
	r.mu.Unlock()
	m.ended = append(m.ended, r)
	m.kept += n
	m.bytes += r.size
	m.prune(time.Now())
}

// deactivate counts a run as ended; the caller holds the lock.
func (m *Manager) deactivate(r *Run) {
	m.active--
	of := r.conversation()
	m.turns[of] = slices.DeleteFunc(m.turns[of], func(other *Run) bool { return other == r })
	if len(m.turns[of]) == 0 {
		delete(m.turns, of)
	}
}

// prune drops ended runs that are too old, or too large together.
func (m *Manager) prune(now time.Time) {
	drop := 0
	for _, r := range m.ended {
		r.mu.Lock()
		old, n := now.Sub(r.state.Updated) > m.opts.Retain, r.events.n
		r.mu.Unlock()
		if !old && m.kept <= m.opts.MaxEvents && m.bytes <= m.opts.MaxBytes {
			break
		}
		drop++
		m.kept -= n
		m.bytes -= r.size
		if m.runs[r.ID] == r {
			delete(m.runs, r.ID)
		}
	}
	clear(m.ended[:drop])
	m.ended = m.ended[drop:]
}

// Answer answers a request of a run. The run continues when the answer is stored: after an
// error of the store the client can send it again. The error is a *problem.Problem if the caller of
// ctx may not answer the request.
func (m *Manager) Answer(ctx context.Context, r *Run, a *Answer) error {
	req, err := r.requested(a.ID)
	if err == nil {
		err = r.authorize(ctx, req, a)
	}
	if err == nil {
		err = a.Fits(req.Kind)
	}
	if err != nil {
		return err
	}
	if !m.IsLocal(r) {
		return r.record.saveAnswer(ctx, a) // for the process that has the run
	}
	if r.record != nil {
		if err := r.record.saveAnswer(ctx, a); err != nil {
			return err
		}
		if errors.Is(r.record.lost(), errTaken) { // the process that has the run reads the answer
			r.end(memory.ErrSuspended)
			return nil
		}
	}
	if err := r.answered(a); err != nil && (r.record == nil || !errors.Is(err, ErrAnswered)) { // the stored answer may have been read before
		return err
	}
	return nil
}

// answered passes an answer to the flow. The events of the request are in order: opened,
// answered, and then those of the flow that continues.
func (r *Run) answered(a *Answer) error {
	o, err := r.requests.answer(a)
	if o != nil {
		<-o.opened
		r.add(requestEvent(RequestAnswered, o.answeredBy(a.By)), nil)
		close(o.answered)
	}
	return err
}

// Cancel ends a run, also one of another process.
func (m *Manager) Cancel(ctx context.Context, r *Run) error {
	if m.IsLocal(r) {
		r.Cancel()
		return nil
	}
	if r.State().Status.Ended() {
		return nil
	}
	return m.cancelRemote(ctx, r)
}

// IsLocal reports whether this process has the run; otherwise it is a snapshot.
func (m *Manager) IsLocal(r *Run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[r.ID] == r
}

// wait reports that a run waits for the answers to requests.
func (r *Run) wait(ctx context.Context, opened []*openRequest) {
	if r.record != nil && len(opened) > 0 {
		// Another error is not fatal: the run can still be answered through this process.
		err := r.record.saveState(context.WithoutCancel(ctx), r.Flow, r.State(), r.record.checkOwner)
		if errors.Is(err, errTaken) {
			r.end(memory.ErrSuspended)
		}
	}
	for _, o := range opened {
		r.add(requestEvent(RequestOpened, o.Request), func(*State) {})
		close(o.opened)
	}
}

// requestEvent returns an event of a request.
func requestEvent(t Type, req *Request) Event {
	return Event{Type: t, Step: req.Step, Row: req.Row, Tool: req.Tool, Call: req.Call, Request: req}
}

// Package server serves an application over HTTP: its flows as REST resources and as
// streams, runs and sessions, and the state of the server.
package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Options configures a Server. The zero value serves without authentication, with a
// web interface, and logs nothing.
type Options struct {
	Access    *access.Control // authentication and limits; nil: none
	Store     memory.Store    // runs and other records of the application; nil: its own store
	Log       *slog.Logger    // nil: nothing is logged
	Version   string          // of the program
	NoUI      bool            // no web interface
	Heartbeat time.Duration   // between comments in streams without events; 0: 15 s
	MaxRuns   int             // runs at once; 0: 4,096
	Engine    runs.Engine     // runs the rows; nil: this process

	Test sessions.TestMaker // makes tests of stored conversations; nil: none are made

	Reload bool // the application will be replaced: turns wait for those of the former one
}

// Server is an http.Handler. It is safe for concurrent use.
type Server struct {
	opts     Options
	log      *slog.Logger
	runs     *runs.Manager
	routed   http.Handler // all resources
	handler  http.Handler // routed, with access control
	current  atomic.Pointer[generation]
	reload   atomic.Pointer[ReloadError]
	draining atomic.Bool
	overload rate.Sometimes // logs that runs are refused
	outage   rate.Sometimes // logs that the store fails
	inputs   *host.Inputs
	sessions *sessions.Service
	recorder *telemetry.Recorder // nil without a web interface
	probe    storeProbe
	former   sync.Once // for warnFormer
	metrics  *telemetry.Metrics
}

// ReloadError is why a changed document is not served: the one before it is.
type ReloadError struct {
	Message     string
	Diagnostics diag.List
}

// MarshalJSON writes the diagnostics as qtype validate does.
func (e *ReloadError) MarshalJSON() ([]byte, error) {
	var list bytes.Buffer
	if err := diag.JSON(&list, e.Diagnostics); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Message     string          `json:"message"`
		Diagnostics json.RawMessage `json:"diagnostics"`
	}{e.Message, list.Bytes()})
}

// New returns a server for an application. Shutdown ends it.
func New(app *runtime.App, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	s := &Server{log: o.Log, overload: rate.Sometimes{Interval: time.Second}, outage: rate.Sometimes{Interval: time.Second}, metrics: telemetry.NewMetrics(true)}
	s.opts, s.inputs = o, host.NewInputs(s.state)
	s.current.Store(s.newGeneration(app))
	if !o.NoUI {
		s.recorder = telemetry.NewRecorder(tracedRuns, tracedBytes)
	}
	s.runs = runs.NewManager(runs.Options{State: s.state, MaxActive: o.MaxRuns, Log: o.Log, Context: s.observe, Engine: o.Engine, Lease: s.lease})
	s.sessions = s.newSessions()
	s.routed = s.routes()
	s.handler = s.routed
	if o.Access != nil {
		s.handler = o.Access.Wrap(s.handler)
	}
	return s
}

// state returns the records of the application that is served now. A former application closes
// its store after the last of its runs.
func (s *Server) state() store.Application { return s.current.Load().state }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Routes returns the handler without access control, for an http.Server of Options.Access,
// which adds it.
func (s *Server) Routes() http.Handler { return s.routed }

// Resume continues the stored runs that no server runs. Call it after the start, and
// from time to time where several servers share a store.
func (s *Server) Resume(ctx context.Context) (int, error) {
	s.former.Do(func() { s.warnFormer(ctx) })
	return s.runs.Resume(ctx, s.current.Load().App)
}

// warnFormer warns about runs that wait in a store and belong to no application.
func (s *Server) warnFormer(ctx context.Context) {
	backend := s.state().Store
	page, err := store.ListSessions(ctx, backend, "qtype:unfinished-runs", store.SessionQuery{Limit: 1})
	if err == nil && len(page) > 0 {
		s.log.Warn("the store has runs of a program before qtype 0.1, which belong to no application and are not continued: finish them with that program", "store", storeurl.Location(backend))
	}
}

// Swap serves another application for new requests. The former one is closed when its
// last run has ended.
func (s *Server) Swap(app *runtime.App) {
	old := s.current.Swap(s.newGeneration(app))
	s.reload.Store(nil)
	s.runs.Retire(old.App, old.close)
}

// RejectReload reports that a changed document has errors and is not served.
func (s *Server) RejectReload(e *ReloadError) { s.reload.Store(e) }

// Shutdown refuses new runs, and waits until the active ones have ended or ctx ends.
// Runs that survive a restart are suspended. It does not close the application.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	err := s.runs.Shutdown(ctx)
	s.current.Load().close()
	return err
}

// Host returns what protocols need of the server.
func (s *Server) Host() *host.Host {
	h := &host.Host{Runs: s.runs, Current: func() *host.Application { return s.current.Load().Application }, Fail: s.fail, Heartbeat: s.opts.Heartbeat, Log: s.log,
		State: s.state, Inputs: s.inputs, Authentication: "none", Version: s.opts.Version, Address: s.opts.Access.Address, Record: s.sessions.Record,
		Fetch: func(ctx context.Context, url string) ([]byte, string, error) { return s.fetcher(ctx)(url) },
		Failure: func(run *runs.Run) *problem.Problem {
			state := run.State()
			return s.failure(run, &state)
		},
	}
	if s.opts.Access != nil {
		h.Authentication = s.opts.Access.Authentication()
	}
	return h
}

// use keeps the application that is served now open until release is called, also if it
// is replaced.
func (s *Server) use() (release func()) {
	for {
		g := s.current.Load()
		s.runs.Use(g.App)
		if s.current.Load() == g {
			return func() { s.runs.Release(g.App) }
		}
		s.runs.Release(g.App)
	}
}

// App returns the application that is served.
func (s *Server) App() *runtime.App { return s.current.Load().App }

// fail writes an error as a problem, and logs those of the server.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.Of(err)
	switch {
	case p != nil:
	case errors.Is(err, runs.ErrBusy):
		s.overload.Do(func() { s.log.Warn("too many runs are active", "path", r.URL.Path) })
		p = problem.New(http.StatusServiceUnavailable, "busy", "the server has too many active runs; try again later")
		p.RetryAfter = time.Second
	case errors.Is(err, runs.ErrClosed):
		p = shuttingDown()
	case errors.Is(err, runs.ErrDigest):
		p = problem.New(http.StatusConflict, "idempotency_key_reused", "the Idempotency-Key was used for a different request")
	case isStoreError(err):
		s.outage.Do(func() { s.log.Error("the store failed", "path", r.URL.Path, "error", err) })
		p = problem.New(http.StatusServiceUnavailable, "store_unavailable", "the store of the server is not available; try again later")
		p.RetryAfter = 5 * time.Second
	case r.Context().Err() != nil:
		p = problem.New(statusClientClosed, "cancelled", "the request was cancelled")
	default:
		s.log.Error("a request failed", "path", r.URL.Path, "error", err)
		p = problem.New(http.StatusInternalServerError, "internal_error", "the server could not process the request")
	}
	problem.Respond(w, r, p)
}

func shuttingDown() *problem.Problem {
	p := problem.New(http.StatusServiceUnavailable, "shutting_down", "the server is shutting down")
	p.RetryAfter = 5 * time.Second
	return p
}

// statusClientClosed is the status for a client that has gone; it is only logged.
const statusClientClosed = 499

func isStoreError(err error) bool {
	_, ok := errors.AsType[*memory.StoreError](err)
	return ok
}

// Package server serves an application over HTTP: its flows as REST resources and as
// streams, runs and sessions, and the state of the server.
package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/waves"
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
	Batches   *waves.Shared   // makes the calls of runs that ask for batches, of an application that was made for it; nil: none may ask

	Telemetry telemetry.Parts // sends traces and serves metrics; the zero value does neither

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
	former   sync.Once         // for warnFormer
	metrics  telemetry.Metrics // nil for none
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
	s := &Server{log: o.Log, overload: rate.Sometimes{Interval: time.Second}, outage: rate.Sometimes{Interval: time.Second}}
	if o.Telemetry.Metrics != nil {
		s.metrics = o.Telemetry.Metrics(true)
	}
	s.opts, s.inputs = o, host.NewInputs(s.state)
	s.current.Store(s.newGeneration(app))
	if !o.NoUI {
		s.recorder = telemetry.NewRecorder(tracedRuns, tracedBytes)
	}
	s.runs = runs.NewManager(runs.Options{State: s.state, MaxActive: o.MaxRuns, Log: o.Log, Context: s.observe, Engine: o.Engine, Batches: o.Batches, Lease: s.lease})
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

const (
	resumePeriod = 5 * time.Second // between two looks for runs that another server has left
	closeTime    = time.Second     // how long responses may take after the last run has ended
)

// Serve resumes stored runs, and then accepts connections until ctx ends; Options.Access must be set.
// At the end, active runs may take the time drain. started is called when connections are accepted. It does
// not close the application.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration, started func()) error {
	if n, err := s.Resume(ctx); err != nil {
		s.log.Error("stored runs could not be resumed", "error", err)
	} else if n > 0 {
		s.log.Info("runs resumed", "runs", n)
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	go s.resumeRuns(background)
	srv := s.opts.Access.Server(s.routed)
	ended := make(chan error, 1)
	go func() { ended <- s.opts.Access.Serve(srv, l) }()
	started()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain(srv, drain)
	return nil
}

// drain waits for active runs and requests.
func (s *Server) drain(srv *http.Server, longest time.Duration) {
	s.log.Info("shutting down")
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		s.log.Warn("active runs were ended", "after", longest)
	}
	closing, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	if err := srv.Shutdown(closing); err != nil {
		_ = srv.Close()
	}
}

// resumeRuns continues runs that another server has left.
func (s *Server) resumeRuns(ctx context.Context) {
	tick := time.NewTicker(resumePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := s.Resume(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("stored runs could not be resumed", "error", err)
			}
		}
	}
}

// maxKey is the longest Idempotency-Key.
const maxKey = 255

// checkKey returns a problem for an Idempotency-Key that a client must not choose.
func checkKey(key string) error {
	switch {
	case len(key) > maxKey:
		return headerProblem("Idempotency-Key", "the key is longer than 255 bytes")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return headerProblem("Idempotency-Key", "the key has other characters than visible ASCII")
	}
	return nil
}

// headerProblem returns the problem of a wrong header.
func headerProblem(name, detail string) error {
	p := problem.New(http.StatusBadRequest, "invalid_header", "%s", detail)
	p.Errors = []problem.Field{{Pointer: "header " + name, Detail: detail}}
	return p
}

func unsupportedMedia(expected string) error {
	return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the Content-Type must be %s", expected)
}

// sessionID returns the session that a request names by header, empty for none. The
// header session_id is that of QType (Python); proxies often drop it.
func sessionID(r *http.Request) (string, error) {
	for _, name := range []string{"X-Session-Id", "session_id"} {
		if id := headerValue(r, name); id != "" {
			return id, host.CheckSession("header "+name, id)
		}
	}
	return "", nil
}

// headerValue returns a header, also one whose name is not in the canonical form.
func headerValue(r *http.Request, name string) string {
	if v := r.Header.Get(name); v != "" {
		return v
	}
	for key, values := range r.Header {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// runIDOf returns the id of the run of an idempotency key: the same key of another
// caller or for another flow is another run.
func runIDOf(p access.Principal, flow, key string) string {
	h := sha256.New()
	for _, part := range []string{p.Name, flow, key} {
		_, _ = io.WriteString(h, part+"\x00") // a hash does not fail
	}
	return "run_" + strings.ToUpper(hex.EncodeToString(h.Sum(nil)[:16]))
}

// digest identifies the content of a request.
func digest(body []byte, session string) string {
	h := sha256.New()
	h.Write(body)
	_, _ = io.WriteString(h, "\x00"+session)
	return hex.EncodeToString(h.Sum(nil))
}

// prefersAsync reports whether the client wants the run instead of its result.
func prefersAsync(r *http.Request) bool {
	for _, v := range r.Header.Values("Prefer") {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "respond-async") {
				return true
			}
		}
	}
	return false
}

// keptOpen is a store that applications use one after the other.
type keptOpen struct{ *inprocess.Store }

// KeepOpen returns a store in this process that applications use one after the other: Close does nothing.
func KeepOpen(store *inprocess.Store) memory.Store { return keptOpen{store} }

// Close does nothing.
func (keptOpen) Close() error { return nil }

package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

const (
	workerTimeout    = 5 * time.Second        // how long a run may have no worker before the server logs it
	maxStarts        = 16                     // workflows and turns that are being started at once: more would be slower, and time out
	maxStartsWaiting = 512                    // of those that wait for that: they have started before their clients give up
	maxStartTime     = 250 * time.Millisecond // for which a turn without events is being started: nothing shows that it has begun
	startRetry       = 5 * time.Second        // after which a client may try again if Temporal has not answered, or too many wait
)

// Server runs the requests of a server on Temporal. It is a runs.Engine, and safe for concurrent use.
type Server struct {
	cfg    durable.Config
	client client.Client
	log    *slog.Logger

	starting *gate          // of workflows that are being started, and of turns that have not begun
	lanes    lanes          // workflows for turns
	ending   sync.WaitGroup // the ends of workflows that were canceled
}

// Serve connects a server to Temporal.
func (e Engine) Serve(ctx context.Context, cfg durable.Config, log *slog.Logger) (durable.Server, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: e.complete(cfg), client: c, log: log, starting: newGate(maxStarts, maxStartsWaiting)}, nil
}

// Check logs whether a worker has the document, and which flows workers cannot run.
func (s *Server) Check(ctx context.Context, app *runtime.App) {
	for _, f := range app.Spec().Flows {
		if _, err := app.NewRowCodec(f.ID); err != nil {
			s.log.Warn("requests for a flow will fail", "flow", f.ID, "error", err)
			continue
		}
		s.warn(ctx, requestQueue(queueOf(app.Spec(), f, newSealer(s.cfg))))
	}
}

// warn logs that no worker polls a queue.
func (s *Server) warn(ctx context.Context, queue string) {
	if isUnserved(ctx, s.client, queue) {
		s.log.Warn("no worker has this document, so requests wait: start one with qtype worker", "queue", queue)
	}
}

// Close ends the connection.
func (s *Server) Close() {
	s.ending.Wait()
	s.closeLanes()
	s.client.Close()
}

// Run runs a request; see runs.Engine.
func (s *Server) Run(ctx context.Context, job *runs.Job) (release func(), err error) {
	r, err := s.begin(ctx, job)
	if err != nil {
		return func() {}, err
	}
	err = s.follow(ctx, r, job)
	r.begun()
	switch {
	case errors.Is(err, memory.ErrSuspended):
		return func() {}, err
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return func() {}, errors.Join(err, s.cancel(r))
	}
	return func() {
		if err := errors.Join(r.blobs.remove(r.plan.Run), r.blobs.client.Close()); err != nil {
			s.log.Warn("the blobs of a run could not be deleted", "run", job.ID, "error", err)
		}
	}, err
}

// begin starts the workflow of a request, unless it was started by another server.
func (s *Server) begin(ctx context.Context, job *runs.Job) (*engineRun, error) {
	codec, err := job.App.NewRowCodec(job.Flow.ID)
	if err != nil {
		return nil, err
	}
	// With its time, because a client may use an id again when its run is no longer stored.
	id := strings.Join([]string{"qtype", job.App.Spec().ID, job.Flow.ID, job.ID, strconv.FormatInt(job.Created.UnixNano(), 36)}, "-")
	r := &engineRun{
		cfg: s.cfg, batch: &batch.Config{Quiet: true}, client: s.client, codec: codec, app: job.App, flow: job.Flow, blobs: newBlobs(s.cfg),
		workflow: id, queue: requestQueue(queueOf(job.App.Spec(), job.Flow, newSealer(s.cfg))),
		header: checkpoint.Header{Started: job.Created.Truncate(time.Second), Run: rand.Text(), Flow: job.Flow.ID},
	}
	if r.plan, err = s.plan(ctx, r, job); err != nil {
		return nil, err
	}
	leave, err := s.starting.enter(ctx)
	if err != nil {
		return nil, errors.Join(err, r.blobs.remove(r.plan.Run))
	}
	if r.begun = leave; isTurn(job, r.plan) {
		return r, s.enterLane(ctx, r)
	}
	err = r.start(ctx)
	leave()
	if err == nil {
		return r, nil
	}
	if isAway(err) && ctx.Err() == nil {
		s.ending.Go(func() { _ = s.cancel(r) }) // it may have started
		return nil, s.unavailable(r, err)
	}
	removed := r.blobs.remove(r.plan.Run)
	if _, exists := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); !exists || removed != nil {
		return nil, errors.Join(err, removed)
	}
	r.plan, err = r.planOf(ctx)
	return r, err
}

// unavailable logs that Temporal has not answered, and returns the answer to the client.
func (s *Server) unavailable(r *engineRun, err error) error {
	s.log.Error("a run was not started", "workflow", r.workflow, "error", err)
	return tryLater("the server could not start the run; try again later")
}

// tryLater returns the answer to a client whose request can be sent again.
func tryLater(detail string) error {
	p := problem.New(http.StatusServiceUnavailable, "engine_unavailable", "%s", detail)
	p.RetryAfter = startRetry
	return p
}

// plan stores the rows and the request.
func (s *Server) plan(ctx context.Context, r *engineRun, job *runs.Job) (*plan, error) {
	waits := mayWait(job.Flow) || len(job.Tools) > 0
	start, err := runs.EncodeStart(&job.Start)
	if err != nil {
		return nil, err
	}
	request, err := r.blobs.writePlace(ctx, requestName(r.header.Run), servedRequest{Start: start})
	if err != nil {
		return nil, err
	}
	u := newRequestUploader(r.codec, r.blobs, r.header.Run, waits)
	if len(job.Rows) == 1 {
		u.partitions = make([]partitionRows, 1)
	}
	partitions, inline, err := u.upload(ctx, func(yield func(runtime.Input) bool) {
		for _, values := range job.Rows {
			if !yield(runtime.Input{Values: values, Session: job.Session}) {
				return
			}
		}
	})
	if err != nil {
		return nil, errors.Join(err, r.blobs.remove(r.header.Run))
	}
	r.sessions, r.users = u.owners.lists(s.cfg)
	p := &plan{
		Run: r.header.Run, App: job.App.Spec().ID, Flow: job.Flow.ID, Partitions: partitions, Inline: inline,
		Local: job.Flow.Plan().IsComputation(), MayWait: waits, Heartbeat: s.cfg.Heartbeat, HistoryLimit: historyLimit, Budget: newBudget(job.Flow), Request: &request,
	}
	p.Begin = len(job.Rows) == 1 && !p.Local
	if inline != nil && len(job.Rows) == 1 && !u.codec.HasBatches() { // results of more rows are shown as they come
		p.MaxOutput = maxInline
	}
	return p, nil
}

// cancel cancels the workflow, and deletes its blobs when it has ended.
func (s *Server) cancel(r *engineRun) error {
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	if err := s.client.CancelWorkflow(ctx, r.workflow, ""); err != nil && !isNotFound(err) {
		stop()
		return err
	}
	s.ending.Go(func() {
		defer stop()
		_ = s.client.GetWorkflow(ctx, r.workflow, "").Get(ctx, nil) // it ends with an error
		if err := errors.Join(r.blobs.remove(r.plan.Run), r.blobs.client.Close()); err != nil {
			s.log.Warn("the blobs of a run could not be deleted", "workflow", r.workflow, "error", err)
		}
	})
	return nil
}

package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/server/runs"
)

const (
	maxLaneTime = time.Hour                  // for which a server uses a lane
	laneTimeout = maxLaneTime + maxChunkTime // after which Temporal ends the lane of a server that was killed
	maxLanes    = 3                          // other lanes for a turn whose lane has ended before it began
	maxLaneIdle = 5 * time.Minute            // after which a server ends a lane
)

// lane is a workflow of runLane that a server has started. At most one turn is in it.
type lane struct {
	id    string
	run   string // the id of its run: without it, Temporal looks for the newest one
	began time.Time
	freed time.Time // when its last turn ended

	hasEnded bool // it takes no more turns
}

// lanes are the lanes of a server that have no turn, by the task queue; the last ones are used first. They are safe for concurrent use.
type lanes struct {
	mu   sync.Mutex
	free map[string][]*lane
}

// take returns a lane without a turn; nil if there is none.
func (l *lanes) take(queue string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.free[queue]
	if len(free) == 0 {
		return nil
	}
	last := free[len(free)-1]
	l.free[queue] = free[:len(free)-1]
	return last
}

// put adds a lane whose turn has ended, and returns those that are no longer used.
func (l *lanes) put(queue string, one *lane) (old []*lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == nil {
		l.free = map[string][]*lane{}
	}
	one.freed = time.Now()
	isOld := func(k *lane) bool { return time.Since(k.freed) > maxLaneIdle || time.Since(k.began) > maxLaneTime }
	for _, k := range append(l.free[queue], one) {
		if isOld(k) {
			old = append(old, k)
		}
	}
	l.free[queue] = slices.DeleteFunc(append(l.free[queue], one), isOld)
	return old
}

// takeAll returns all lanes without a turn.
func (l *lanes) takeAll() (all []*lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, free := range l.free {
		all = append(all, free...)
	}
	l.free = nil
	return all
}

// isTurn reports whether a request runs in a lane: one row that waits for nobody, of a run that nobody finds after the end of its server.
func isTurn(job *runs.Job, p *plan) bool {
	return len(job.Rows) == 1 && !job.Durable && !p.MayWait && len(p.Partitions) == 1 && p.Partitions[0] == 1
}

// enterLane gives a run a lane, a new one if all have a turn.
func (s *Server) enterLane(ctx context.Context, r *engineRun) error {
	r.plan.Resumed = true // a turn that is sent again may have begun
	if r.lane = s.lanes.take(r.queue); r.lane == nil {
		if err := s.startLane(ctx, r); err != nil {
			r.begun()
			return errors.Join(err, r.blobs.remove(r.plan.Run))
		}
	}
	r.workflow = r.lane.id
	return nil
}

// startLane starts a lane for a run.
func (s *Server) startLane(ctx context.Context, r *engineRun) error {
	id := strings.Join([]string{"qtype", r.plan.App, r.plan.Flow, "turns", rand.Text()}, "-")
	started, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: r.queue, WorkflowExecutionTimeout: laneTimeout, WorkflowTaskTimeout: taskTime(s.cfg.Heartbeat),
		Memo: map[string]any{memoHeader: checkpoint.Header{Flow: r.plan.Flow}, memoApp: r.plan.App}, StaticSummary: "turns of " + r.plan.Flow,
	}, laneName)
	switch {
	case err == nil:
		r.lane = &lane{id: id, run: started.GetRunID(), began: time.Now()}
		return nil
	case isAway(err) && ctx.Err() == nil:
		return s.unavailable(r, err)
	}
	return fmt.Errorf("the workflow cannot be started: %w", err)
}

// turn gives the run to its lane, and waits for its end.
func (s *Server) turn(ctx context.Context, r *engineRun, last *state) error {
	for more := maxLanes; ; more-- {
		var made turned
		err := s.send(ctx, r, &made)
		_, failed := errors.AsType[*serviceerror.WorkflowNotReady](err)
		switch {
		case failed && isCanceled(ctx, s.client, r.workflow, r.lane.run):
			r.lane.hasEnded = true
			return temporal.NewCanceledError()
		case (isNotFound(err) || failed) && ctx.Err() == nil && more > 0: // the lane has ended before, or its task has failed
			s.endLanes([]*lane{r.lane})
			if err := s.startLane(ctx, r); err != nil {
				return err
			}
			r.workflow = r.lane.id
			continue
		case isAway(err) && ctx.Err() == nil:
			s.ending.Go(func() { _ = s.cancel(r) }) // it may have begun
			return s.unavailable(r, err)
		case err != nil || made.Ended:
			r.lane.hasEnded = true
		}
		*last = made.State
		return err
	}
}

// leaveLane lets other turns use the lane of a run, unless it has ended. A run that is canceled does not leave its lane: the lane is canceled.
func (s *Server) leaveLane(r *engineRun) {
	if r.lane != nil && !r.lane.hasEnded {
		s.endLanes(s.lanes.put(r.queue, r.lane))
	}
}

// send sends the turn, which has the same id if it is sent again, and waits for its end. Once Temporal has stored it, it also waits while
// Temporal is away.
func (s *Server) send(ctx context.Context, r *engineRun, made *turned) error {
	sent, err := s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: r.plan.Run, WorkflowID: r.workflow, RunID: r.lane.run, UpdateName: turnUpdate, Args: []any{*r.plan}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return awaitAnswer(ctx, func() error { return sent.Get(ctx, made) })
}

// endLanes ends lanes without a turn.
func (s *Server) endLanes(all []*lane) {
	for _, k := range all {
		s.ending.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
			defer stop()
			_ = s.client.TerminateWorkflow(ctx, k.id, "", "no turns") // else Temporal ends it
		})
	}
}

// closeLanes ends the lanes of the server.
func (s *Server) closeLanes() {
	s.endLanes(s.lanes.takeAll())
	s.ending.Wait()
}

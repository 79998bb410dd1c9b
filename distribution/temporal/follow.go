package temporal

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// The times between two looks for the blobs of a run: short while there are new ones, then longer.
const (
	minLook      = 50 * time.Millisecond
	maxLook      = 250 * time.Millisecond // in a bucket
	maxLocalLook = 100 * time.Millisecond // in a folder, where a look is a system call
)

// errUnexpected is a text of a run that ended, but whose results are not there.
var errUnexpected = errors.New("the results of the run were deleted, or are elsewhere: the server and all workers need the same --blobs")

// follower reads the events and results of the workflow of a request.
type follower struct {
	server *Server
	run    *engineRun
	job    *runs.Job
	down   *downloader
	parts  []int // the number of the next blob with events, by partition
	asked  map[string]bool

	hasEnded bool // the workflow has, so that its outputs are known

	asking sync.WaitGroup
}

// follow reports what workers do until the workflow has ended.
func (s *Server) follow(ctx context.Context, r *engineRun, job *runs.Job) error {
	chunks := r.plan.Partitions
	f := &follower{server: s, run: r, job: job, parts: make([]int, len(chunks)), asked: map[string]bool{}}
	f.down = &downloader{codec: r.codec, blobs: r.blobs, run: r.plan.Run, count: func(event) {}, partitions: make([]partitionResults, len(chunks))}
	ctx, stop := context.WithCancel(ctx)
	defer f.asking.Wait()
	defer stop()
	ended := make(chan error, 1)
	var last state
	go func() { ended <- s.await(ctx, r, &last) }()
	if !job.Events {
		starts := time.AfterFunc(maxStartTime, r.begun)
		defer starts.Stop()
	}
	unseen := time.AfterFunc(workerTimeout, func() { s.warn(ctx, r.queue) })
	defer unseen.Stop()
	next := time.NewTimer(minLook)
	defer next.Stop()
	most := maxLook
	if r.blobs.isLocal() {
		most = maxLocalLook
	}
	if r.plan.MaxOutput > 0 && !job.Events && !r.plan.MayWait {
		next.Stop() // there is nothing to see before the end
	}
	for wait := minLook; ; wait = min(wait+wait/4, most) {
		select {
		case <-ctx.Done():
			<-ended //nolint:errcheck // it ends because of ctx
			return context.Cause(ctx)
		case err := <-ended:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.leaveLane(r)
			f.down.state, f.hasEnded = last, true
			return f.finish(ctx, err)
		case <-next.C:
		}
		found, err := f.look(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if found {
			r.begun()
			unseen.Stop()
			wait = minLook
		}
		next.Reset(wait)
	}
}

// await waits for the end of a workflow or a turn, also while Temporal is away.
func (s *Server) await(ctx context.Context, r *engineRun, last *state) error {
	if r.lane != nil {
		return s.turn(ctx, r, last)
	}
	return awaitAnswer(ctx, func() error { return s.client.GetWorkflow(ctx, r.workflow, "").Get(ctx, last) })
}

// awaitAnswer makes a call until Temporal answers it.
func awaitAnswer(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !isAway(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(maxLook):
		case <-ctx.Done():
		}
	}
}

// finish reports the rest of a workflow that has ended with err.
func (f *follower) finish(ctx context.Context, err error) error {
	if _, reading := f.look(ctx); reading != nil {
		return reading
	}
	switch {
	case temporal.IsCanceledError(err):
		return runs.ErrCancelled
	case err != nil:
		return explain(err)
	case !f.isComplete():
		return errUnexpected
	}
	return nil
}

func (f *follower) isComplete() bool {
	for at, chunks := range f.run.plan.Partitions {
		if f.down.partitions[at].chunk < chunks {
			return false
		}
	}
	return true
}

// look reads new blobs and reports what they have, and whether there were any.
func (f *follower) look(ctx context.Context) (found bool, err error) {
	chunks := f.run.plan.Partitions
	for at := range chunks {
		for f.down.partitions[at].chunk < chunks[at] {
			more, err := f.lookAt(ctx, at)
			found = found || more
			if err != nil {
				return found, err
			}
			if !more {
				break
			}
		}
	}
	for next := f.down.next(chunks); next != nil; next = f.down.next(chunks) {
		f.job.Result(next)
	}
	return found, nil
}

// lookAt reads the next blob of a partition: events of its current chunk, or its output.
func (f *follower) lookAt(ctx context.Context, at int) (found bool, err error) {
	if found, err = f.events(ctx, at); found || err != nil {
		return found, err
	}
	run, chunk := f.run.plan.Run, f.down.partitions[at].chunk
	out := &output{}
	switch data := f.down.inline(at, chunk); {
	case data != nil:
		err = decode(data, out)
	case f.run.plan.MaxOutput > 0 && !f.hasEnded:
		return false, nil
	default:
		err = f.run.blobs.read(ctx, outputName(run, at, chunk), out)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for more := true; more; { // stored before the output, but after the look at them
		if more, err = f.events(ctx, at); err != nil {
			return true, err
		}
	}
	f.parts[at] = 0
	return true, f.down.add(at, out)
}

// events reads the next blob with events of a partition.
func (f *follower) events(ctx context.Context, at int) (found bool, err error) {
	var part streamed
	err = f.run.blobs.read(ctx, eventsName(f.run.plan.Run, at, f.down.partitions[at].chunk, f.parts[at]), &part)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.parts[at]++
	for i := range part.Events {
		ev := &part.Events[i]
		switch {
		case ev.Requests != nil:
			f.ask(ctx, at, ev.Requests)
			continue
		case ev.Err != "":
			ev.Event.Err = errors.New(ev.Err)
		}
		f.job.Event(ev.Event)
	}
	return true, nil
}

// ask puts requests that belong together to the client.
func (f *follower) ask(ctx context.Context, at int, all []streamedRequest) {
	all = slices.DeleteFunc(all, func(r streamedRequest) bool {
		known := f.asked[requestKey(&r)]
		f.asked[requestKey(&r)] = true
		return known
	})
	round := tool.NewRound(len(all))
	for i := range all {
		call, ended := round.Join(ctx, i)
		f.asking.Go(func() {
			defer ended()
			f.answer(call, at, &all[i])
		})
	}
}

// requestKey is the id of a request in the workflow.
func requestKey(r *streamedRequest) string { return string(r.Kind) + "-" + r.Caller.Key }

// answer waits for the answer of the client, and gives it to the workflow. If the client cannot be asked, the
// model gets the reason.
func (f *follower) answer(ctx context.Context, at int, r *streamedRequest) {
	t := r.Tool
	call := tool.Request{Tool: tool.Info{ID: t.ID, Set: t.Set, Name: t.Name, Description: t.Description}, Args: r.Args, Caller: r.Caller, By: r.By}
	for _, declared := range f.job.App.Spec().AllTools() {
		if c, ok := declared.(*spec.ClientTool); ok && c.ID == t.ID && r.Kind == durable.ClientTool {
			call.Outputs = c.Outputs
		}
	}
	given := givenAnswer{ID: requestKey(r), Partition: at}
	answer, err := f.job.Ask(ctx, runs.RequestKind(r.Kind), call)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && r.Kind == durable.Approval:
		given.Reason = err.Error()
	case err != nil:
		given.Error = err.Error()
	default:
		given.Answer = durable.Answer{Approved: answer.Approved != nil && *answer.Approved, Reason: answer.Reason, Result: answer.Result, Error: answer.Error, By: answer.By}
		if r.Kind == durable.Approval {
			given.Result, given.Error = nil, ""
		}
	}
	f.give(ctx, given)
}

// give gives an answer to the workflow. While workers and Temporal are not reachable, it tries again.
func (f *follower) give(ctx context.Context, a givenAnswer) {
	for wait := minLook; ctx.Err() == nil; wait = min(2*wait, maxRetryWait) {
		taken, err := f.server.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: f.run.workflow, UpdateName: answerCallUpdate, Args: []any{a}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = taken.Get(ctx, nil)
		}
		_, rejected := errors.AsType[*temporal.ApplicationError](err) // it was answered by another server
		if err == nil || rejected || isNotFound(err) {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

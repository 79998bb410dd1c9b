package temporal

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// A lane is a workflow that runs turns of a server, one after the other. Each is an update: Temporal stores it once, when it has
// ended, where a workflow of its own is stored when it starts, begins and ends.
const (
	laneName   = "qtype.turns"
	turnUpdate = "turn"

	emptyTask  = 3   // the events of a workflow task without commands, up to the begin of the next one
	turnEvents = 6   // those of a workflow task with a turn
	maxTurns   = 100 // of a lane: the state of a workflow has all of its updates
)

// errLongHistory ends a turn that waits for so many activities that its workflow must end.
var errLongHistory = errors.New("the history of the workflow is too long")

// turned is what a lane has made of a turn.
type turned struct {
	State state
	Ended bool `json:",omitempty"` // the lane takes no other turn
}

// laneRun is one execution of a lane.
type laneRun struct {
	turns int
	next  int // the events when the next turn begins, unless a workflow task is repeated
	sums  status
	ended bool

	isCanceled bool // the last turn was
}

// runLane runs turns until one was not as short as others, or has failed.
func runLane(ctx workflow.Context) error {
	l := &laneRun{next: workflow.GetInfo(ctx).GetCurrentHistoryLength()}
	l.ended = l.next > firstTask
	err := errors.Join(workflow.SetUpdateHandler(ctx, turnUpdate, l.turn), workflow.SetQueryHandler(ctx, progressQuery, func() (status, error) { return l.sums, nil }))
	if err != nil {
		return err
	}
	err = workflow.Await(ctx, func() bool { return l.ended })
	stored, end := workflow.NewDisconnectedContext(ctx)
	defer end()
	if waited := workflow.Await(stored, func() bool { return workflow.AllHandlersFinished(stored) }); waited != nil {
		return waited
	}
	if l.isCanceled || ctx.Err() != nil {
		return temporal.NewCanceledError()
	}
	return err
}

// turn runs the chunk of a plan. A workflow task that is repeated may follow the end of a worker, so an activity runs the chunk then.
func (l *laneRun) turn(ctx workflow.Context, p plan) (turned, error) {
	length := workflow.GetInfo(ctx).GetCurrentHistoryLength()
	r := newScheduler(p)
	r.first = -1
	if length == l.next || l.turns == 0 && length == l.next+emptyTask {
		r.first = length
	}
	l.turns++
	r.runPartitions(ctx)
	l.sums.Rows, l.sums.Failed, l.sums.Repeated = l.sums.Rows+r.state.Rows, l.sums.Failed+r.state.Failed, l.sums.Repeated+r.state.Repeated
	isShort := workflow.GetInfo(ctx).GetCurrentHistoryLength() == length
	l.next = length + turnEvents
	l.ended = !r.isComplete() || !isShort || r.first < 0 || l.turns >= maxTurns
	switch {
	case r.isComplete():
		return turned{State: r.state, Ended: l.ended}, nil
	case ctx.Err() != nil || r.isCanceled && r.err == nil:
		l.isCanceled = true
		return turned{}, temporal.NewCanceledError()
	case r.err == nil:
		r.err = errLongHistory
	}
	return turned{}, r.failure()
}

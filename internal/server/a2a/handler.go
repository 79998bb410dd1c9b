package a2a

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/runs"
)

// taskID is the form of the ids of tasks: runs of other protocols are not tasks.
var taskID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^task_[0-9A-F]{32}$`) })

// allStates are the states that the protocol has, and none.
var allStates = []sdk.TaskState{sdk.TaskStateSubmitted, sdk.TaskStateWorking, sdk.TaskStateCompleted, sdk.TaskStateFailed, sdk.TaskStateCanceled,
	sdk.TaskStateInputRequired, sdk.TaskStateRejected, sdk.TaskStateAuthRequired, sdk.TaskStateUnspecified}

var errHistory = invalid("historyLength must not be negative")

// find returns the run of a task of the caller.
func (q *requests) find(ctx context.Context, id sdk.TaskID) (*runs.Run, error) {
	if id == "" {
		return nil, invalid("the id of the task is missing")
	}
	if !taskID().MatchString(string(id)) {
		return nil, sdk.ErrTaskNotFound
	}
	run, err := q.Runs.Find(ctx, q.app.App, q.principal.Name, string(id))
	if err != nil {
		return nil, err
	}
	if run == nil || q.flow != nil && run.Flow.ID != q.flow.ID() {
		return nil, sdk.ErrTaskNotFound
	}
	return run, nil
}

// GetTask returns a task.
func (q *requests) GetTask(ctx context.Context, req *sdk.GetTaskRequest) (*sdk.Task, error) {
	if req.HistoryLength != nil && *req.HistoryLength < 0 {
		return nil, errHistory
	}
	run, err := q.find(ctx, req.ID)
	if err != nil {
		return nil, q.rpcError(err)
	}
	return q.task(run, true), nil
}

// ListTasks returns the tasks of the caller that this server has, the newest first.
func (q *requests) ListTasks(_ context.Context, req *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	size := cmp.Or(req.PageSize, 50)
	if req.HistoryLength != nil && *req.HistoryLength < 0 {
		return nil, errHistory
	}
	if !slices.Contains(allStates, req.Status) {
		return nil, invalid("there is no state %q", req.Status)
	}
	if size < 1 || size > 100 {
		return nil, invalid("pageSize must be a number from 1 to 100")
	}
	from, ok := runs.ParsePlace(req.PageToken)
	if req.PageToken != "" && !ok {
		return nil, invalid("pageToken is not of this server")
	}
	type placed struct {
		run   *runs.Run
		place runs.Place
	}
	var list []placed // with the times of one moment
	for _, run := range q.Runs.List(q.principal.Name, func(run *runs.Run) bool { return q.selects(run, req) }) {
		list = append(list, placed{run, runs.PlaceOf(run.State().Updated, run.ID)})
	}
	slices.SortFunc(list, func(a, b placed) int { return a.place.Compare(b.place) })
	out := &sdk.ListTasksResponse{Tasks: []*sdk.Task{}, TotalSize: len(list), PageSize: size}
	for _, one := range list {
		switch {
		case ok && from.Compare(one.place) >= 0:
			continue
		case len(out.Tasks) == size:
			out.NextPageToken = from.String()
			return out, nil
		}
		from, ok = one.place, true
		out.Tasks = append(out.Tasks, q.task(one.run, req.IncludeArtifacts))
	}
	return out, nil
}

// selects reports whether a run is a task that a client wants to list.
func (q *requests) selects(run *runs.Run, req *sdk.ListTasksRequest) bool {
	state := run.State()
	return taskID().MatchString(run.ID) && (q.flow == nil || run.Flow.ID == q.flow.ID()) &&
		(req.ContextID == "" || q.info(run).ContextID == req.ContextID) &&
		(req.Status == "" || states[state.Status] == req.Status) &&
		(req.StatusTimestampAfter == nil || state.Updated.After(*req.StatusTimestampAfter))
}

// CancelTask ends a task.
func (q *requests) CancelTask(ctx context.Context, req *sdk.CancelTaskRequest) (*sdk.Task, error) {
	run, err := q.find(ctx, req.ID)
	if err != nil {
		return nil, q.rpcError(err)
	}
	if s := run.State().Status; s.Ended() {
		return nil, fmt.Errorf("%w: it is %s", sdk.ErrTaskNotCancelable, s)
	}
	if err := q.Runs.Cancel(ctx, run); err != nil {
		return nil, q.rpcError(err)
	}
	if run, err = q.end(ctx, run); err != nil {
		return nil, q.rpcError(err)
	}
	if s := run.State().Status; s != runs.Cancelled {
		return nil, fmt.Errorf("%w: it is %s", sdk.ErrTaskNotCancelable, s)
	}
	return q.task(run, true), nil
}

// SendMessage starts a task, or continues one that waits, and returns it when it has ended
// or waits.
func (q *requests) SendMessage(ctx context.Context, req *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	s, err := q.send(ctx, req)
	if err != nil {
		return nil, q.rpcError(err)
	}
	if req.Config == nil || !req.Config.ReturnImmediately {
		if s.run, err = q.settle(ctx, s.run, s.answered); err != nil {
			return nil, q.rpcError(err)
		}
	}
	return q.task(s.run, true), nil
}

// SendStreamingMessage is SendMessage with the events of the task: first the task, then its
// changes until it has ended or waits.
func (q *requests) SendStreamingMessage(ctx context.Context, req *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		s, err := q.send(ctx, req)
		if err != nil {
			yield(nil, q.rpcError(err))
			return
		}
		q.follow(ctx, s, yield)
	}
}

// SubscribeToTask returns the task and its changes until it has ended or waits.
func (q *requests) SubscribeToTask(ctx context.Context, req *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		run, err := q.find(ctx, req.ID)
		if err == nil && run.State().Status.Ended() {
			err = fmt.Errorf("%w: the task has ended", sdk.ErrUnsupportedOperation)
		}
		if err != nil {
			yield(nil, q.rpcError(err))
			return
		}
		q.follow(ctx, &sent{run: run, seen: run.Count()}, yield)
	}
}

// GetTaskPushConfig is not supported.
func (q *requests) GetTaskPushConfig(context.Context, *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

// ListTaskPushConfigs is not supported.
func (q *requests) ListTaskPushConfigs(context.Context, *sdk.ListTaskPushConfigRequest) (*sdk.ListTaskPushConfigResponse, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

// CreateTaskPushConfig is not supported.
func (q *requests) CreateTaskPushConfig(context.Context, *sdk.PushConfig) (*sdk.PushConfig, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

// DeleteTaskPushConfig is not supported.
func (q *requests) DeleteTaskPushConfig(context.Context, *sdk.DeleteTaskPushConfigRequest) error {
	return sdk.ErrPushNotificationNotSupported
}

// GetExtendedAgentCard returns the card with the flows that the caller may call.
func (q *requests) GetExtendedAgentCard(context.Context, *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	if q.Authentication == "none" {
		return nil, fmt.Errorf("%w: there is no other card than the public one", sdk.ErrUnsupportedOperation)
	}
	return q.card(), nil
}

// writeTimeout is how long a client may take to accept a part of a response.
const writeTimeout = 30 * time.Second

// writer is a response that can be flushed, also where others wrap that of the server: the SDK
// requires an http.Flusher.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{w, http.NewResponseController(w)}
}

// Write writes a part of the response.
func (w *writer) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers support it
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *writer) Flush() { _ = w.control.Flush() } // the next Write reports that the client has gone

// Unwrap returns the response for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

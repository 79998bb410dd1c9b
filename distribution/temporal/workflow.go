package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/waves"
)

// The names that histories have.
const (
	workflowName  = "qtype.run"
	activityName  = "qtype.chunk"
	beginName     = "qtype.begin"
	keepName      = "qtype.keep"
	progressQuery = "progress"
	requestsQuery = "requests"
	answerUpdate  = "answer"

	servedName       = "qtype.request" // the workflow of a request of a server
	answerCallUpdate = "answer_call"
)

const (
	maxAttempts  = 20                  // of a chunk, at least; see attempts
	maxChunkTime = 24 * time.Hour      // of one attempt
	maxWavesTime = 30 * 24 * time.Hour // of one attempt that waits for batches
	maxLocalTime = time.Hour           // of an attempt without input or output
	maxKeepTime  = time.Minute         // of storing an answer, with all attempts
	maxRetryWait = 30 * time.Second
	historyLimit = 5_000 // events, after which the workflow continues as a new one
)

// The types of errors that end a run. Others are repeated by Temporal.
const (
	outageError  = "outage"  // all other rows would fail, too
	failedError  = "failed"  // the flow cannot run
	stoppedError = "stopped" // as many rows as the user allows have failed
)

// plan is the input of the workflow.
type plan struct {
	Run          string           // a unique id, part of the idempotency keys of turns
	App          string           // the application's id
	Flow         string           // the flow's id
	Partitions   []int            // the number of chunks of each partition; those of a partition run one after the other
	Inline       [][][]byte       // the encoded chunks, if they are small; by partition and number
	Local        bool             // the steps only compute, so chunks are local activities
	Begin        bool             // the first workflow task begins the chunk; see scheduler.runChunk
	MayWait      bool             // rows may need an approval or a client tool; chunks have one row
	Resumed      bool             // an earlier workflow may have finished some chunks
	MaxFailures  int64            // the number of failed rows that stops the run; 0 for any number
	Heartbeat    time.Duration    // how long a worker may be silent
	Outage       time.Duration    // how long rows wait for a server that is away; 0 if they do not
	MaxOutput    int              // bytes of an output that is not a blob; 0 if all are
	HistoryLimit int              // events, after which the workflow continues as a new one
	Budget       *budget          // of the flow; nil if it has none
	Request      *place           // the servedRequest of a run of a server; nil for a run of a file
	Retry        int              // how often failed rows were run again by --retry-failed
	Earlier      []map[int][]byte // the Inline outputs before the last time
	Tail         bool             // the flow has batch steps: the last partition is the steps from the first of them on, for all rows
	Total        int64            // the rows of a flow with batch steps
	Partial      bool             // the rows are only a part of the input
	State        state            // what is finished
	Waves        *wavePlan        `json:",omitempty"` // the run makes its calls in batches: one activity runs all rows; nil for chunks
}

// again lets the failed rows of all chunks run again.
func (p *plan) again() {
	p.Retry++
	p.Earlier, p.State = p.State.Inline, state{}
}

// folder returns the folder of what the run makes.
func (p *plan) folder() string { return folderOf(p.Run, p.Retry) }

// folder is that of the plan.
func (t *task) folder() string { return folderOf(t.Run, t.Retry) }

// folderOf returns the folder of what a run makes when failed rows run again for the nth time.
func folderOf(run string, n int) string {
	if n == 0 {
		return run
	}
	return fmt.Sprintf("%s/retry-%d", run, n)
}

// budget identifies what a run may spend. A run that is resumed has another one.
type budget struct {
	ID      string    // of the sum of what its chunks have used
	Began   time.Time // when the run began
	Tokens  int       // as in spec.Budget
	Calls   int       // as in spec.Budget
	Seconds float64   // as in spec.Budget
	Money   float64   // as in spec.Budget
}

// state is what a run has finished. It is the result of the workflow.
type state struct {
	Next    []int            // the number of finished chunks of each partition
	Inline  []map[int][]byte // the outputs that are small, if the rows are too; by partition and number
	Rows    int64            // results
	Failed  int64            // those that failed
	Steps   []stepStats      // the sums
	Stopped string           // the blob with the output of the last steps that were stopped; empty if they were not

	HasFailed bool // as in stats

	Repeated int64 // calls that were made again; see steps.EventRepeated
	Outages  int   // the last rows that have failed for a reason for which all would, of chunks that are too small to end the run

	Listed  bool          // the memo shows that rows wait
	Asked   int           // requests so far
	Open    []openRequest // without an answer, the oldest first
	Answers []givenAnswer // for chunks that are not finished

	Moved map[int]*place // of chunks whose workers were stopped, by partition

	Batches  *waves.Status `json:",omitempty"` // when a run in batches was stopped
	Canceled *int          `json:",omitempty"` // batches, by wavePlan.Cancel
}

// task is the input of an activity.
type task struct {
	Run       string        // as in the plan
	Flow      string        // as in the plan
	Partition int           // the number of the partition
	Number    int           // of the chunk in its partition
	Rows      []byte        // the encoded chunk; nil if it is a blob
	Resumed   bool          // as in the plan
	Heartbeat time.Duration // as in the plan
	Outage    time.Duration // as in the plan
	Max       int           // bytes of an output that is returned
	MayWait   bool          // as in the plan
	Budget    *budget       // as in the plan
	Request   *place        // as in the plan
	Retry     int           // as in the plan
	Earlier   []byte        // the output of the chunk before failed rows run again; nil if it is a blob
	Head      bool          // only the steps before the first batch step run
	Tail      *tail         // the other steps of such a flow run, on the results of all chunks; nil for a chunk
	Moved     *place        // where the finished rows are, if the worker of an earlier activity was stopped; nil otherwise
	Answers   map[string]durable.Answer
	Kept      map[string]string `json:",omitempty"` // the blobs with others of the Answers
	Waves     *wavePlan         `json:",omitempty"` // as in the plan
	Begun     bool              `json:",omitempty"` // a workflow task has begun the chunk in this worker
}

// tail is what runs the last steps of a flow with batch steps.
type tail struct {
	Chunks      []int // the number of chunks of each partition before
	MaxFailures int64 // the number of failed rows that stops the run; 0 for any number
	Partial     bool  // the rows are only a part of the input
	HasFailed   bool  // as in stats, of the chunks
}

// done is the result of an activity.
type done struct {
	Rows    int64
	Failed  int64
	Steps   []stepStats
	Output  []byte // the encoded output; nil if it is a blob
	Stopped string // the blob with the output of the last steps of a flow with batch steps, if too many rows have failed

	HasFailed bool // as in stats

	Repeated int64 // calls that were made again

	Outages int    `json:",omitempty"` // as in stats
	Outage  string `json:",omitempty"`

	Waiting []keyedRequest // what the chunk waits for; if there is any, it is not finished
	Moved   *place         // where the finished rows are, if the worker was stopped before the others were

	Canceled *int `json:",omitempty"` // batches, by wavePlan.Cancel: the run is to end

	Busy  bool   `json:",omitempty"` // a workflow task could not begin the chunk
	Queue string `json:",omitempty"` // of the worker in which the chunk goes on; empty if it has ended
}

// mayHaveBegun reports whether an earlier attempt or activity may have run rows of the chunk.
func (t *task) mayHaveBegun(ctx context.Context) bool {
	return t.Resumed || t.Answers != nil || t.Moved != nil || activity.GetInfo(ctx).Attempt > 1
}

// runWorkflow runs the chunks of a plan: those of a partition in order, the partitions at the same time.
func runWorkflow(ctx workflow.Context, p plan) (state, error) {
	r := newScheduler(p)
	r.first = firstTask
	if err := r.setHandlers(ctx); err != nil {
		return r.state, err
	}
	if err := r.list(ctx, len(p.State.Open) > 0); err != nil { // an earlier execution may have had another memo
		return r.state, err
	}
	r.runPartitions(ctx)
	stored, end := workflow.NewDisconnectedContext(ctx)
	defer end()
	err := workflow.Await(stored, func() bool { return workflow.AllHandlersFinished(stored) }) // answers that are being stored
	if err != nil {
		return r.state, err
	}
	switch {
	case r.isComplete():
		return r.state, nil
	case ctx.Err() != nil || r.state.Canceled != nil || r.isCanceled && r.err == nil:
		return r.state, temporal.NewCanceledError(r.state)
	case r.err != nil:
		return r.state, r.failure()
	case r.hasTooManyFailures():
		return r.state, temporal.NewNonRetryableApplicationError(fmt.Sprintf("%d rows failed", r.state.Failed), stoppedError, nil, r.state)
	}
	p.State = r.state
	return r.state, workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, p)
}

// scheduler is one execution of the workflow.
type scheduler struct {
	plan       plan
	state      state
	err        error // why the run cannot go on; nil if it can
	cancel     func()
	isCanceled bool // a worker has noted that the run is canceled, or the workflow has
	first      int  // the most events when a workflow task may begin the chunk
}

func newScheduler(p plan) *scheduler {
	r := &scheduler{plan: p, state: p.State}
	if r.state.Next == nil {
		r.state.Next, r.state.Inline = make([]int, len(p.Partitions)), make([]map[int][]byte, len(p.Partitions))
	}
	return r
}

// runPartitions runs the chunks of all partitions.
func (r *scheduler) runPartitions(ctx workflow.Context) {
	inner, cancel := workflow.WithCancel(ctx)
	r.cancel = cancel
	wait := workflow.NewWaitGroup(ctx)
	for partition := range r.plan.Partitions {
		wait.Add(1)
		workflow.Go(inner, func(ctx workflow.Context) {
			defer wait.Done()
			r.runPartition(ctx, partition)
		})
	}
	wait.Wait(ctx)
}

// runPartition runs chunks until all are finished, or the workflow is to end.
func (r *scheduler) runPartition(ctx workflow.Context, partition int) {
	if r.isTail(partition) && workflow.Await(ctx, func() bool { return r.isHeadComplete() || r.mustEnd(ctx) }) != nil {
		return // canceled
	}
	for r.state.Next[partition] < r.plan.Partitions[partition] && !r.mustEnd(ctx) {
		if r.isWaiting(partition) {
			if r.awaitAnswers(ctx, partition) != nil {
				return // canceled
			}
			continue
		}
		number := r.state.Next[partition]
		made, err := r.runChunk(ctx, partition, number)
		switch {
		case temporal.IsCanceledError(err):
			r.isCanceled, r.state.Batches = true, batchesOf(err)
			return
		case err != nil || made.Canceled != nil:
			r.stop(err, made.Canceled)
			return
		case len(made.Waiting) > 0:
			r.ask(partition, made.Waiting)
			if err := r.list(ctx, false); err != nil && r.err == nil {
				r.err = err
			}
			continue
		case r.move(partition, made.Moved):
			continue
		}
		if r.isTail(partition) { // it counts the rows of all chunks
			r.state.Rows, r.state.Failed, r.state.Repeated, r.state.Stopped = 0, 0, 0, made.Stopped
		}
		r.state.Repeated += made.Repeated
		r.state.Rows, r.state.Failed = r.state.Rows+made.Rows, r.state.Failed+made.Failed
		if made.Stopped != "" {
			return // with too many failures
		}
		details := fmt.Sprintf("%d rows, %d failed, %d requests wait", r.state.Rows, r.state.Failed, len(r.state.Open))
		workflow.SetCurrentDetails(ctx, details)
		r.forget(partition)
		r.countOutages(&made)
		r.state.Next[partition]++
		r.state.Steps = addSteps(r.state.Steps, made.Steps)
		r.state.HasFailed = r.state.HasFailed || made.HasFailed
		if made.Output != nil {
			if r.state.Inline[partition] == nil {
				r.state.Inline[partition] = map[int][]byte{}
			}
			r.state.Inline[partition][number] = made.Output
		}
	}
}

// stop ends the run: an activity has failed, or has canceled batches.
func (r *scheduler) stop(err error, canceled *int) {
	r.state.Batches, r.state.Canceled = batchesOf(err), canceled
	if r.err == nil {
		r.err = err
	}
	r.cancel()
}

// batchesOf returns the batches of a run that an activity has ended with an error; nil if they are not known.
func batchesOf(err error) *waves.Status {
	var at place
	failure, isFailure := errors.AsType[*temporal.ApplicationError](err)
	canceled, isCanceled := errors.AsType[*temporal.CanceledError](err)
	switch {
	case isFailure && failure.HasDetails():
		_ = failure.Details(&at) // another failure has other details
	case isCanceled && canceled.HasDetails():
		_ = canceled.Details(&at)
	}
	if at.Waves == nil {
		return nil
	}
	return &at.Waves.Status
}

// countOutages ends the run if the last rows of several chunks have failed for a reason for which all would. A chunk with enough of
// them fails itself.
func (r *scheduler) countOutages(made *done) {
	if int64(made.Outages) < made.Rows {
		r.state.Outages = 0
	}
	if r.state.Outages += made.Outages; r.state.Outages >= batch.MaxOutages && r.plan.Request == nil && r.err == nil {
		text := fmt.Sprintf("stopped: %d rows in a row failed: %s", r.state.Outages, made.Outage)
		r.err = temporal.NewNonRetryableApplicationError(text, outageError, nil)
		r.cancel()
	}
}

// move notes where the finished rows of a chunk are whose worker was stopped, and reports whether it was.
func (r *scheduler) move(partition int, to *place) bool {
	if to == nil {
		delete(r.state.Moved, partition)
		return false
	}
	if r.state.Moved == nil {
		r.state.Moved = map[int]*place{}
	}
	r.state.Moved[partition] = to
	return true
}

// isTail reports whether a partition is the last steps of a flow with batch steps.
func (r *scheduler) isTail(partition int) bool {
	return r.plan.Tail && partition == len(r.plan.Partitions)-1
}

// isHeadComplete reports whether all chunks of a flow with batch steps are finished.
func (r *scheduler) isHeadComplete() bool {
	last := len(r.plan.Partitions) - 1
	return slices.Equal(r.state.Next[:last], r.plan.Partitions[:last])
}

// tail returns what runs the last steps.
func (r *scheduler) tail() *tail {
	last := len(r.plan.Partitions) - 1
	return &tail{Chunks: r.plan.Partitions[:last], MaxFailures: r.plan.MaxFailures, Partial: r.plan.Partial, HasFailed: r.state.HasFailed}
}

// task returns the input of the activity of a chunk.
func (r *scheduler) task(partition, number int) task {
	t := task{Run: r.plan.Run, Flow: r.plan.Flow, Partition: partition, Number: number, Resumed: r.plan.Resumed, Heartbeat: r.plan.Heartbeat, Outage: r.plan.Outage, Max: r.plan.MaxOutput,
		MayWait: r.plan.MayWait, Budget: r.plan.Budget, Request: r.plan.Request, Waves: r.plan.Waves, Retry: r.plan.Retry, Moved: r.state.Moved[partition]}
	t.Answers, t.Kept = r.answersOf(partition)
	if r.plan.Earlier != nil {
		t.Earlier = r.plan.Earlier[partition][number]
	}
	switch t.Head = r.plan.Tail; {
	case r.isTail(partition):
		t.Head, t.Tail = false, r.tail()
	case r.plan.Inline != nil:
		t.Rows = r.plan.Inline[partition][number]
	}
	return t
}

// summary returns what Temporal shows of a chunk.
func (r *scheduler) summary(t *task) string {
	if t.Waves != nil {
		return "all rows, in batches of providers"
	}
	if t.Tail != nil {
		return "the steps from the first batch step on"
	}
	return fmt.Sprintf("chunk %d of %d, partition %d", t.Number+1, r.plan.Partitions[t.Partition], t.Partition+1)
}

// execute starts the activity of a chunk.
func (r *scheduler) execute(ctx workflow.Context, t *task) workflow.Future {
	retry := &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: maxRetryWait, MaximumAttempts: attempts(r.plan.Outage),
		NonRetryableErrorTypes: []string{outageError, failedError},
	}
	if r.plan.Local && t.Tail == nil {
		local := workflow.LocalActivityOptions{StartToCloseTimeout: maxLocalTime, RetryPolicy: retry, Summary: r.summary(t)}
		ctx = workflow.WithLocalActivityOptions(ctx, local)
		return workflow.ExecuteLocalActivity(ctx, activityName, *t)
	}
	limit := maxChunkTime
	if t.Waves != nil {
		limit = maxWavesTime
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit, HeartbeatTimeout: r.plan.Heartbeat, WaitForCancellation: true, RetryPolicy: retry,
		Summary: r.summary(t),
	})
	return workflow.ExecuteActivity(ctx, activityName, *t)
}

// attempts returns how often a chunk is run whose workers die, or cannot reach the blobs for the time of an outage.
func attempts(outage time.Duration) int32 {
	return max(maxAttempts, int32(outage/maxRetryWait)+6) // the first five waits are shorter
}

// mustEnd reports whether no further chunk is to be started.
func (r *scheduler) mustEnd(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return r.err != nil || ctx.Err() != nil || r.hasTooManyFailures() ||
		info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= r.plan.HistoryLimit
}

func (r *scheduler) hasTooManyFailures() bool {
	return r.plan.MaxFailures > 0 && r.state.Failed >= r.plan.MaxFailures
}

func (r *scheduler) isComplete() bool {
	for partition, chunks := range r.plan.Partitions {
		if r.state.Next[partition] < chunks {
			return false
		}
	}
	return true
}

// failure returns the error of the workflow, with what is finished, from which it is resumed.
func (r *scheduler) failure() error {
	kind, text := failedError, brief(r.err)
	if cause, ok := errors.AsType[*temporal.ApplicationError](r.err); ok {
		kind, text = cause.Type(), cause.Message()
	}
	return temporal.NewNonRetryableApplicationError(text, kind, nil, r.state)
}

package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
)

// The keys of memos, besides memoHeader.
const (
	memoApp      = "app"      // the id of the application
	memoSessions = "sessions" // see owners
	memoUsers    = "users"
	memoWaiting  = "waiting" // whether rows wait for answers
)

// maxListed is how many workflows List returns at most: the newest ones.
const maxListed = 1_000

// List returns the runs that Temporal has and the filter selects, the newest first. Of runs that were
// resumed or continued it has the newest execution.
func (Engine) List(ctx context.Context, cfg durable.Config, filter durable.Filter) ([]durable.Run, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	query, err := listQuery(ctx, c, cfg, filter)
	if err != nil {
		return nil, err
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
	seen := map[string]bool{}
	var all []durable.Run
	for len(all) < maxListed {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("the runs cannot be listed: %w", err)
		}
		for _, info := range page.GetExecutions() {
			if id := info.GetExecution().GetWorkflowId(); !seen[id] {
				seen[id] = true
				r := runOf(cfg, info)
				showWaves(ctx, c, cfg, info, &r)
				if reveal(&r, filter); filter.Selects(&r) { // the server has also selected runs without attributes
					all = append(all, r)
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	markUnserved(ctx, c, all)
	return all, nil
}

// markUnserved states of open runs whose queues no worker polls that there is none.
func markUnserved(ctx context.Context, c client.Client, all []durable.Run) {
	unserved := map[string]bool{}
	for i := range all {
		r := &all[i]
		if !r.Closed.IsZero() {
			continue
		}
		if _, known := unserved[r.Queue]; !known {
			unserved[r.Queue] = isUnserved(ctx, c, r.Queue)
		}
		if unserved[r.Queue] {
			r.Status, r.Reason = durable.UnservedStatus, "no worker has its flow: task queue "+r.Queue
		}
	}
}

// runOf returns what Temporal's list has of a run. Without the key of a run it has no flow and no input.
func runOf(c durable.Config, info *workflowpb.WorkflowExecutionInfo) durable.Run {
	r := durable.Run{ID: info.GetExecution().GetWorkflowId(), Engine: durable.Temporal, Status: statusName(info.GetStatus()), Started: info.GetStartTime().AsTime(), Queue: info.GetTaskQueue()}
	if info.GetCloseTime() != nil {
		r.Closed = info.GetCloseTime().AsTime()
	}
	var header checkpoint.Header
	fields := info.GetMemo().GetFields()
	data := dataConverter(c)
	if data.FromPayload(fields[memoHeader], &header) == nil {
		r.Flow, r.Input = header.Flow, header.Input.Path
	}
	_ = data.FromPayload(fields[memoApp], &r.Document) // the run of another program has none
	_ = data.FromPayload(fields[memoSessions], &r.Sessions)
	_ = data.FromPayload(fields[memoUsers], &r.Users)
	if r.Closed.IsZero() && isWaiting(c, fields[memoWaiting]) {
		r.Status = durable.WaitingStatus
	}
	return r
}

// isWaiting reads the memo that a workflow has changed. The SDK does not encrypt these changes.
func isWaiting(c durable.Config, p *commonpb.Payload) (waiting bool) {
	if converter.GetDefaultDataConverter().FromPayload(p, &waiting) != nil {
		_ = dataConverter(c).FromPayload(p, &waiting) // a value of another program is false
	}
	return waiting
}

// statusName returns the name of a status for users.
func statusName(s enums.WorkflowExecutionStatus) string {
	var name strings.Builder
	for i, letter := range s.String() { // such as TimedOut
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(letter)
	}
	return strings.ToLower(name.String())
}

// Show returns a run with what it has finished. For a run that is not complete a worker
// must be there to answer.
func (e Engine) Show(ctx context.Context, cfg durable.Config, id string) (*durable.Run, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	known, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, unknownRun(id, err)
	}
	r := runOf(cfg, known.GetWorkflowExecutionInfo())
	setWaves(&r, waveState(cfg, known))
	shown := []durable.Run{r}
	if markUnserved(ctx, c, shown); shown[0].Status == durable.UnservedStatus {
		return &shown[0], nil
	}
	if isLane := known.GetWorkflowExecutionInfo().GetType().GetName() == laneName; isLane || r.Closed.IsZero() {
		var s status
		if query(ctx, c, id, progressQuery, &s) != nil {
			r.Reason = "no worker answers"
			return &r, nil
		}
		if r.Batches != nil {
			return &r, nil
		}
		r.Rows, r.Failed, r.Repeated = s.Rows, s.Failed, s.Repeated
		r.Status = statusName(known.GetWorkflowExecutionInfo().GetStatus()) // the memo may be older
		if s.Waiting > 0 {
			r.Status = durable.WaitingStatus
			r.Waiting, err = waiting(ctx, c, e.complete(cfg), id)
		}
		return &r, err
	}
	var s state
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &s); err != nil {
		r.Reason = explain(err).Error()
		s, _ = stateOf(err)
	}
	r.Rows, r.Failed, r.Repeated, r.Batches = s.Rows, s.Failed, s.Repeated, s.Batches
	return &r, nil
}

// showWaves adds the batches to a run that has not ended.
func showWaves(ctx context.Context, c client.Client, cfg durable.Config, info *workflowpb.WorkflowExecutionInfo, r *durable.Run) {
	if !r.Closed.IsZero() || !isWaves(cfg, info) {
		return
	}
	if known, err := c.DescribeWorkflowExecution(ctx, r.ID, ""); err == nil {
		setWaves(r, waveState(cfg, known))
	}
}

// isWaves reports whether a run makes its calls in batches.
func isWaves(cfg durable.Config, info *workflowpb.WorkflowExecutionInfo) bool {
	var header checkpoint.Header
	return dataConverter(cfg).FromPayload(info.GetMemo().GetFields()[memoHeader], &header) == nil && isInBatches(&header)
}

// setWaves adds the batches to a run.
func setWaves(r *durable.Run, s *batch.WaveState) {
	if s == nil {
		return
	}
	r.Batches, r.Rows = &s.Status, int64(s.Done)
	if len(s.Open) > 0 {
		r.Status = durable.WaitingStatus
	}
}

// waiting returns the open requests of a run, as far as they are known without its blobs.
func waiting(ctx context.Context, c client.Client, cfg durable.Config, id string) (all []durable.Request, err error) {
	b := newBlobs(cfg)
	defer func() { err = errors.Join(err, b.client.Close()) }()
	for last := 0; ; last = all[len(all)-1].Number {
		var page []keyedRequest
		if err := query(ctx, c, id, requestsQuery, &page, last); err != nil {
			return nil, err
		}
		var full []durable.Request
		for i := range page {
			r := page[i].Request
			if page[i].Blob != "" && cfg.Blobs != "" {
				if i == 0 || page[i-1].Blob != page[i].Blob {
					full = nil
					if err := b.read(ctx, page[i].Blob, &full); err != nil {
						return nil, err
					}
				}
				if at := slices.IndexFunc(full, func(r durable.Request) bool { return r.Key == page[i].ID }); at >= 0 {
					r = full[at]
					r.Number = page[i].Number
				}
			}
			all = append(all, r)
		}
		if len(page) < maxPage {
			return all, nil
		}
	}
}

// query reads the answer of a workflow to a query.
func query(ctx context.Context, c client.Client, id, name string, answer any, args ...any) error {
	known, err := c.QueryWorkflow(ctx, id, "", name, args...)
	if err != nil {
		return err
	}
	return known.Get(answer)
}

// maxAnswers is the size in bytes of all answers of one call of Answer, which Temporal limits.
const maxAnswers = 1 << 20

// Answer answers requests of a run. A worker must be there to take the answers. Either all
// are taken, or none.
func (Engine) Answer(ctx context.Context, cfg durable.Config, id string, answers []durable.Answer) error {
	size := 0
	for _, a := range answers {
		size += len(a.Result) + len(a.Error) + len(a.Reason)
	}
	if len(answers) > 1 && size > maxAnswers {
		return fmt.Errorf("the answers have %d bytes, more than %d: give them in several commands", size, maxAnswers)
	}
	c, err := dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	taken, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: answerUpdate, Args: []any{answers}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = taken.Get(ctx, nil)
	}
	if isNotFound(err) {
		return unknownRun(id, err)
	}
	if err != nil {
		return explain(err)
	}
	return nil
}

// Cancel ends a run, which can be resumed. If it has ended, and was made in batches, workers cancel these.
func (e Engine) Cancel(ctx context.Context, cfg durable.Config, id string) error {
	c, err := dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	known, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return unknownRun(id, err)
	}
	info := known.GetWorkflowExecutionInfo()
	switch status := info.GetStatus(); status {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
	default:
		if isWaves(cfg, info) {
			return again(ctx, c, e.complete(cfg), info, &batch.Config{Cancel: true}, nil)
		}
	}
	return cancel(ctx, c, id, info.GetTaskQueue())
}

// cancel cancels a run, or terminates it if no worker can take note of that.
func cancel(ctx context.Context, c client.Client, id, queue string) error {
	var err error
	if isUnserved(ctx, c, queue) {
		err = c.TerminateWorkflow(ctx, id, "", "canceled without a worker")
	} else {
		err = c.CancelWorkflow(ctx, id, "")
	}
	if err != nil {
		return unknownRun(id, err)
	}
	return nil
}

// end cancels a run and waits for its end.
func end(ctx context.Context, c client.Client, id, queue string) error {
	if err := cancel(ctx, c, id, queue); err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	_ = c.GetWorkflow(limited, id, "").Get(limited, nil) // it ends with an error
	if limited.Err() != nil {
		return fmt.Errorf("%s does not end: no worker takes note of the cancellation", id)
	}
	return nil
}

// unknownRun returns the error for the id of a run that Temporal does not have.
func unknownRun(id string, err error) error {
	if isNotFound(err) {
		return errors.New("there is no such run, or it has ended: " + id)
	}
	return err
}

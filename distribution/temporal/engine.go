// Package temporal runs the rows of flows on workers with Temporal: a workflow schedules chunks of rows, and activities
// of workers run them. It is a durable.Engine.
package temporal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// Engine runs rows on Temporal. It is a durable.Engine, and safe for concurrent use.
type Engine struct {
	Buckets remotefs.Buckets // the services whose buckets may hold rows and results
}

// complete adds the services to a configuration.
func (e Engine) complete(cfg durable.Config) durable.Config {
	cfg.Buckets = e.Buckets
	return cfg
}

// batchEngine is the batch.Engine.
type batchEngine struct{ durable.Config }

// Batch returns the engine that runs the rows of files.
func (e Engine) Batch(cfg durable.Config) batch.Engine { return &batchEngine{e.complete(cfg)} }

// memoHeader is the key of the memo with the description of a run, a checkpoint.Header.
const memoHeader = "qtype"

// Open finds the workflow that is resumed, or prepares a new one.
func (e *batchEngine) Open(ctx context.Context, app *runtime.App, flow *spec.Flow, cfg *batch.Config) (batch.EngineRun, error) {
	if err := errors.Join(checkConfig(cfg), checkWaves(flow, cfg)); err != nil {
		return nil, err
	}
	codec, err := app.NewRowCodec(flow.ID)
	if err != nil {
		return nil, err
	}
	header, err := headerOf(flow, cfg)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, e.Config)
	if err != nil {
		return nil, err
	}
	r := &engineRun{
		cfg: e.Config, batch: cfg, client: c, codec: codec, app: app, flow: flow, header: header,
		blobs: newBlobs(e.Config), workflow: workflowID(app, flow, cfg), queue: queueOf(app.Spec(), flow, newSealer(e.Config)),
	}
	if err := r.find(ctx); err != nil {
		return nil, errors.Join(err, r.Close(false))
	}
	return r, nil
}

// checkConfig rejects what this engine does not have.
func checkConfig(cfg *batch.Config) error {
	if cfg.Ephemeral {
		return terminal.Usagef("--ephemeral and --engine temporal exclude each other: the rows run in other processes")
	}
	return nil
}

// headerOf describes a run, so that only the same run is resumed.
func headerOf(flow *spec.Flow, cfg *batch.Config) (h checkpoint.Header, err error) {
	h = checkpoint.Header{
		Started: time.Now().UTC().Truncate(time.Second), Run: rand.Text(), Flow: flow.ID, Settings: cfg.Settings(),
		Parts: partsOf(flow),
	}
	if cfg.Waves != nil {
		h.Settings[batchSetting] = "true"
	}
	if cfg.InputFile == "" {
		return h, nil
	}
	h.Input.Path = remotefs.Redacted(cfg.InputFile)
	info, err := os.Stat(cfg.InputFile)
	if err == nil && info.Mode().IsRegular() {
		h.Input, err = checkpoint.Describe(cfg.InputFile)
		return h, err
	}
	return h, nil
}

// partsOf returns digests of what must not change when a run continues.
func partsOf(flow *spec.Flow) map[string]string {
	return checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{Ignore: []string{"description", "ui", "fallbacks"}})
}

// workflowID returns the id of the workflow of a run: the same for the same output, so that
// it is found again.
func workflowID(app *runtime.App, flow *spec.Flow, cfg *batch.Config) string {
	name := rand.Text()
	if cfg.Output != "" {
		full := cfg.Output
		if _, remote := remotefs.Remote(full); !remote {
			if abs, err := filepath.Abs(remotefs.Path(full)); err == nil {
				full = abs
			}
		}
		sum := sha256.Sum256([]byte(full))
		name = hex.EncodeToString(sum[:10])
	}
	return strings.Join([]string{"qtype", app.Spec().ID, flow.ID, name}, "-")
}

// find looks for the workflow of an earlier run with the same output, and decides whether it
// is resumed.
func (r *engineRun) find(ctx context.Context) error {
	known, err := r.client.DescribeWorkflowExecution(ctx, r.workflow, "")
	switch {
	case isNotFound(err):
		return r.checkNothingToResume()
	case err != nil:
		return fmt.Errorf("no answer from Temporal at %s: %w", r.cfg.Address, err)
	}
	info := known.GetWorkflowExecutionInfo()
	status := info.GetStatus()
	var was checkpoint.Header
	payload := info.GetMemo().GetFields()[memoHeader]
	if err := dataConverter(r.cfg).FromPayload(payload, &was); err != nil {
		if r.batch.Restart && !r.batch.Resume { // it may have another key
			return nil
		}
		return fmt.Errorf("workflow %s is not a run of qtype: %w", r.workflow, err)
	}
	if !r.batch.Resume && !r.batch.Cancel {
		if r.batch.Restart || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return r.replace(ctx, &was, status)
		}
		return fmt.Errorf("workflow %s has an interrupted run of this output (%s): use --resume to continue or --restart to start over", r.workflow, statusName(status))
	}
	if changes := was.Changes(r.header); len(changes) > 0 {
		return fmt.Errorf("--resume: this is not the run that was interrupted: %s; --restart starts over", strings.Join(changes, "; "))
	}
	r.header = was
	shown := runOf(r.cfg, info)
	r.sessions, r.users = shown.Sessions, shown.Users
	if shown.Closed.IsZero() && shown.Queue != r.queue && isUnserved(ctx, r.client, shown.Queue) {
		if err := end(ctx, r.client, r.workflow, shown.Queue); err != nil {
			return err
		}
		status = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	}
	if r.batch.Cancel {
		return r.findCanceled(ctx, status, shown.Queue)
	}
	if err := r.attach(ctx, status); err != nil {
		return err
	}
	if status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return r.checkResults(ctx)
	}
	return nil
}

// findCanceled ends the workflow of a run whose batches are to be canceled. One that is complete has none.
func (r *engineRun) findCanceled(ctx context.Context, status enums.WorkflowExecutionStatus, queue string) error {
	switch status {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return nil
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		if err := end(ctx, r.client, r.workflow, queue); err != nil {
			return err
		}
		status = enums.WORKFLOW_EXECUTION_STATUS_CANCELED
	}
	return r.attach(ctx, status)
}

// replace replaces an earlier run. The batches of one that is not complete are canceled by the first activity of this one.
func (r *engineRun) replace(ctx context.Context, was *checkpoint.Header, status enums.WorkflowExecutionStatus) error {
	if !isInBatches(was) || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		r.replaced = was.Run
		return nil
	}
	if r.batch.Waves == nil {
		return fmt.Errorf("workflow %s has the batches of an interrupted run: continue it with --batch --resume, or cancel them and start over with --batch --restart", r.workflow)
	}
	r.earlier = was.Run
	if status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	return end(ctx, r.client, r.workflow, r.queue)
}

// checkResults returns an error if the results of a completed workflow were deleted because its output is written.
func (r *engineRun) checkResults(ctx context.Context) error {
	var s state
	if err := r.client.GetWorkflow(ctx, r.workflow, "").Get(ctx, &s); err != nil {
		return err
	}
	for at, chunks := range r.plan.Partitions {
		isRead := !r.plan.Tail || at == len(r.plan.Partitions)-1
		if !isRead || chunks == 0 || s.Inline[at][0] != nil {
			continue
		}
		if err := r.blobs.read(ctx, outputName(r.plan.folder(), at, 0), &output{}); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return fmt.Errorf("--resume: no interrupted run found for %s: workflow %s is completed, and its results are deleted; omit --resume to overwrite the output", r.batch.Output, r.workflow)
	}
	return nil
}

// checkNothingToResume returns the error of --resume without a run.
func (r *engineRun) checkNothingToResume() error {
	if !r.batch.Resume {
		return nil
	}
	if _, err := os.Stat(r.batch.Output); err == nil {
		return fmt.Errorf("--resume: no interrupted run found for %s; omit --resume to overwrite it", r.batch.Output)
	}
	return nil
}

// attach reads the plan of an earlier workflow, and what it has finished.
func (r *engineRun) attach(ctx context.Context, status enums.WorkflowExecutionStatus) error {
	p, err := r.planOf(ctx)
	if err != nil {
		return err
	}
	r.plan = p
	unfinished := []enums.WorkflowExecutionStatus{
		enums.WORKFLOW_EXECUTION_STATUS_CANCELED, enums.WORKFLOW_EXECUTION_STATUS_FAILED,
		enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
	}
	if r.isRunning = !slices.Contains(unfinished, status); r.isRunning {
		if r.batch.RetryFailed {
			return fmt.Errorf("--retry-failed: workflow %s is %s: --resume writes its output, and --errors its failed rows", r.workflow, statusName(status))
		}
		return r.checkSame()
	}
	var last state
	err = r.client.GetWorkflow(ctx, r.workflow, "").Get(ctx, &last)
	if s, ok := stateOf(err); ok {
		r.plan.State = s
	}
	if r.batch.RetryFailed {
		r.plan.again()
	}
	r.plan.Resumed, r.plan.MaxFailures, r.plan.Budget = true, 0, r.plan.Budget.renewed()
	if r.flow != nil { // its document may have other limits
		r.plan.Budget, r.plan.Outage = newBudget(r.flow), r.batch.Outage
	}
	if r.batch.MaxFailures > 0 { // the earlier run has counted its own
		r.plan.MaxFailures = r.plan.State.Failed + r.batch.MaxFailures
	}
	r.plan.State.Batches, r.plan.State.Canceled = nil, nil
	if r.plan.Waves != nil {
		r.continueWaves()
	}
	return nil
}

// planOf returns the input of the newest execution of the workflow.
func (r *engineRun) planOf(ctx context.Context) (*plan, error) {
	events := r.client.GetWorkflowHistory(ctx, r.workflow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return nil, fmt.Errorf("workflow %s has no history", r.workflow)
	}
	first, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", r.workflow, err)
	}
	p := &plan{}
	input := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := dataConverter(r.cfg).FromPayloads(input, p); err != nil {
		return nil, fmt.Errorf("workflow %s is not a run of qtype: %w", r.workflow, err)
	}
	return p, nil
}

// start starts the workflow, or one that continues an earlier one.
func (r *engineRun) start(ctx context.Context) error {
	reuse, name := enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, workflowName
	if r.plan.Request != nil { // a run of a server is never started again
		reuse, name = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, servedName
	}
	options := client.StartWorkflowOptions{
		ID: r.workflow, TaskQueue: r.queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy:    reuse,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo:                     map[string]any{memoHeader: r.header, memoApp: r.plan.App, memoSessions: r.sessions, memoUsers: r.users},
		TypedSearchAttributes:    r.attributes(), StaticSummary: strings.TrimSpace(r.header.Flow + " " + r.header.Input.Path),
	}
	if r.plan.Begin {
		options.WorkflowTaskTimeout = taskTime(r.plan.Heartbeat)
	}
	if r.batch.Restart {
		options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
	}
	_, err := r.client.ExecuteWorkflow(ctx, options, name, *r.plan)
	if isUnknownAttribute(err) {
		if failed := registerAttributes(ctx, r.client, r.cfg.Namespace); failed != nil && r.batch.Streams != nil && !r.batch.Quiet {
			fmt.Fprintf(r.batch.Streams.Err, "qtype runs list filters the newest %s runs only: search attributes cannot be registered (%s); %s\n",
				textfmt.Thousands(maxListed), terminal.Clean(failed.Error()), registerHint(r.cfg.Namespace))
		}
		options.TypedSearchAttributes = temporal.SearchAttributes{} // the server needs some time to know new ones
		_, err = r.client.ExecuteWorkflow(ctx, options, name, *r.plan)
	}
	if err != nil {
		return fmt.Errorf("the workflow cannot be started: %w", err)
	}
	return nil
}

package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// batchSetting is the setting of runs in batches in their descriptions.
const batchSetting = "--batch"

// isInBatches reports whether a description is that of a run in batches.
func isInBatches(h *checkpoint.Header) bool { return h.Settings[batchSetting] != "" }

// checkWaves rejects flows that cannot run in batches.
func checkWaves(flow *spec.Flow, cfg *batch.Config) error {
	if cfg.Waves != nil && mayWait(flow) {
		return terminal.Usagef("--batch is not available with --engine temporal for flow %s: its rows may wait for approvals or client tools, which the activity of a wave does not", flow.ID)
	}
	return nil
}

// prepareWaves stores the rows for one activity.
func (r *engineRun) prepareWaves(ctx context.Context, job batch.EngineJob) error {
	u := newUploader(r.codec, r.blobs, r.header.Run, maxPartRows, false)
	u.partitions, u.isLarge = make([]partitionRows, 1), true
	chunks, _, err := u.upload(ctx, job.Rows)
	if err != nil || job.ReadError() != nil {
		return errors.Join(err, r.blobs.remove(r.header.Run))
	}
	r.sessions, r.users = u.owners.lists(r.cfg)
	r.plan = &plan{
		Run: r.header.Run, App: r.app.Spec().ID, Flow: r.flow.ID, Partitions: []int{1}, Heartbeat: r.cfg.Heartbeat, Outage: r.batch.Outage, HistoryLimit: historyLimit, Budget: newBudget(r.flow),
		Waves: &wavePlan{Chunks: chunks[0], Least: r.batch.Waves.Least, Finish: r.batch.Finish, MaxFailures: r.batch.MaxFailures, Partial: job.IsPartial(), Earlier: r.earlier},
	}
	return nil
}

// continueWaves changes what another command continues a run with.
func (r *engineRun) continueWaves() {
	p := *r.plan.Waves
	p.Rebuy, p.Cancel = r.batch.Rebuy, r.batch.Cancel
	if r.batch.Waves != nil {
		p.Finish, p.MaxFailures, p.Least = r.batch.Finish, r.batch.MaxFailures, r.batch.Waves.Least
	}
	r.plan.Waves, r.plan.MaxFailures = &p, 0
}

// checkSame rejects flags that a workflow that has not ended does not get.
func (r *engineRun) checkSame() error {
	var flag string
	switch p := r.plan.Waves; {
	case p == nil:
		return nil
	case r.batch.Rebuy && !p.Rebuy:
		flag = "--rebuy"
	case r.batch.Finish != p.Finish:
		flag = "--finish-after"
	default:
		return nil
	}
	return fmt.Errorf("%s: workflow %s goes on without it: end it with qtype runs cancel %s, and continue it with --resume", flag, r.workflow, r.workflow)
}

// Wait runs the rows of a run in batches, or cancels its batches.
func (r *engineRun) Wait(ctx context.Context, job batch.EngineJob) error {
	if r.batch.Cancel && r.plan == nil {
		return fmt.Errorf("--cancel: %s has no batches of an interrupted run", r.batch.Output)
	}
	return r.wait(ctx, job)
}

// canceled reports how many batches the workflow has canceled, which has ended with err.
func (r *engineRun) canceled(err error, job batch.EngineJob) error {
	s, _ := stateOf(err)
	if s.Canceled == nil {
		return explain(err)
	}
	line := textfmt.Thousands(int64(*s.Canceled)) + " batches"
	if *s.Canceled == 1 {
		line = "1 batch"
	}
	job.Waves(batch.WaveState{Lines: []string{line + " of the earlier run canceled; collect the answers that were paid, and send the other calls again, with: " + batch.ResumeCommand(r.batch.Command)}})
	return nil
}

// isOpen reports whether the workflow has not ended.
func (r *engineRun) isOpen(ctx context.Context) (bool, error) {
	known, err := r.client.DescribeWorkflowExecution(ctx, r.workflow, "")
	if err != nil {
		return false, err
	}
	return known.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// wavesAdvice returns where a run in batches is.
func (r *engineRun) wavesAdvice() string {
	if r.batch.Detach {
		return "workers go on with workflow " + r.workflow
	}
	advice := "what was sent and answered is in workflow " + r.workflow
	if r.shown > 0 {
		advice += ", batches at providers go on"
	}
	return advice
}

// watchWaves shows how far the batches are.
func (r *engineRun) watchWaves(ctx context.Context, job batch.EngineJob) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressPause):
		}
		known, err := r.client.DescribeWorkflowExecution(ctx, r.workflow, "")
		if s := waveState(r.cfg, known); err == nil && s != nil && ctx.Err() == nil {
			r.shown = len(s.Open)
			job.Progress.Set(int64(s.Done), int64(s.Done), 0, nil)
			job.Waves(*s)
		}
	}
}

// waveState returns what the activity of a run in batches has reported last; nil for nothing.
func waveState(cfg durable.Config, known *workflowservice.DescribeWorkflowExecutionResponse) *batch.WaveState {
	for _, running := range known.GetPendingActivities() {
		var at place
		if dataConverter(cfg).FromPayloads(running.GetHeartbeatDetails(), &at) == nil && at.Waves != nil {
			return at.Waves
		}
	}
	return nil
}

package temporal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/spec"
)

// Retry continues a canceled, terminated or failed run and keeps its finished rows. Workers continue
// it; the run that writes its output finds it again. app is another version of its document, whose workers continue it,
// also if it has not ended; nil for the same one.
func (Engine) Retry(ctx context.Context, cfg durable.Config, id string, app *spec.Application) error {
	c, err := dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	known, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return unknownRun(id, err)
	}
	return again(ctx, c, cfg, known.GetWorkflowExecutionInfo(), &batch.Config{}, app)
}

// again starts the workflow of a run again, with the flags of a command.
func again(ctx context.Context, c client.Client, cfg durable.Config, info *workflowpb.WorkflowExecutionInfo, flags *batch.Config, app *spec.Application) (err error) {
	id, was := info.GetExecution().GetWorkflowId(), runOf(cfg, info)
	r := &engineRun{cfg: cfg, batch: flags, client: c, workflow: id, queue: was.Queue, sessions: was.Sessions, users: was.Users}
	if err := dataConverter(cfg).FromPayload(info.GetMemo().GetFields()[memoHeader], &r.header); err != nil {
		return fmt.Errorf("workflow %s is not a run of qtype: %w", id, err)
	}
	status := info.GetStatus()
	if app != nil {
		if r.queue, err = queueIn(app, &r.header, cfg); err != nil {
			return err
		}
		if was.Closed.IsZero() {
			if err := end(ctx, c, id, was.Queue); err != nil {
				return err
			}
			status = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
		}
	}
	earlier, err := r.planOf(ctx)
	if err != nil {
		return err
	}
	if earlier.MaxFailures > 0 { // as many as before
		r.batch.MaxFailures = earlier.MaxFailures - earlier.State.Failed
	}
	if err := r.attach(ctx, status); err != nil {
		return err
	}
	if r.isRunning {
		return fmt.Errorf("%s cannot be retried: it is %s", id, was.Status)
	}
	return r.start(ctx)
}

// queueIn returns the task queue of a run in another version of its document. It is an error if finished rows could
// have other results there.
func queueIn(app *spec.Application, was *checkpoint.Header, cfg durable.Config) (string, error) {
	at := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool { return f.ID == was.Flow })
	if at < 0 {
		return "", fmt.Errorf("--with: the document has no flow %s", was.Flow)
	}
	now := *was
	now.Parts = partsOf(app.Flows[at])
	if changes := was.Changes(now); len(changes) > 0 {
		return "", fmt.Errorf("--with: finished rows could have other results: %s; cancel the run, and start over", strings.Join(changes, "; "))
	}
	return queueOf(app, app.Flows[at], newSealer(cfg)), nil
}

package temporal

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/durable"
)

// Retry continues a canceled, terminated or failed run and keeps its finished rows. Workers continue
// it; the run that writes its output finds it again.
func (Engine) Retry(ctx context.Context, cfg durable.Config, id string) error {
	c, err := dial(ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	known, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return unknownRun(id, err)
	}
	info := known.GetWorkflowExecutionInfo()
	was := runOf(cfg, info)
	r := &engineRun{cfg: cfg, batch: &batch.Config{}, client: c, workflow: id, queue: was.Queue, sessions: was.Sessions, users: was.Users}
	if err := dataConverter(cfg).FromPayload(info.GetMemo().GetFields()[memoHeader], &r.header); err != nil {
		return fmt.Errorf("workflow %s is not a run of qtype: %w", id, err)
	}
	earlier, err := r.planOf(ctx)
	if err != nil {
		return err
	}
	if earlier.MaxFailures > 0 { // as many as before
		r.batch.MaxFailures = earlier.MaxFailures - earlier.State.Failed
	}
	if err := r.attach(ctx, info.GetStatus()); err != nil {
		return err
	}
	if r.isRunning {
		return fmt.Errorf("%s cannot be retried: it is %s", id, was.Status)
	}
	return r.start(ctx)
}

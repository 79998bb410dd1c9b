package temporal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/runtime"
)

const stopTimeout = 10 * time.Second // for chunks whose calls have ended, to store what is finished

// Work runs chunks of the flows of the application until ctx ends.
func (e Engine) Work(ctx context.Context, app *runtime.App, cfg durable.WorkerConfig) (err error) {
	cfg.Config = e.complete(cfg.Config)
	c, err := dialMeasured(ctx, cfg.Config, cfg.Log, cfg.Metrics)
	if err != nil {
		return err
	}
	defer c.Close()
	failed := make(chan error, 1)
	pollers := worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 2}
	options := worker.Options{
		WorkerStopTimeout:          cfg.Drain + stopTimeout,
		BackgroundActivityContext:  context.WithoutCancel(ctx), // with observers and the audit log
		ActivityTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(pollers),
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(pollers),
		OnFatalError: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	}
	place := newBlobs(cfg.Config)
	defer func() { err = errors.Join(err, place.client.Close()) }()
	runner := &chunkRunner{app: app, blobs: place, beat: c.RecordActivityHeartbeat, approved: cfg.Approved, answered: cfg.ClientTools, drain: cfg.Drain}
	var queues []string
	var running sync.WaitGroup
	defer running.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for _, flow := range app.Spec().Flows {
		queue := queueOf(app.Spec(), flow, newSealer(cfg.Config))
		for name, parallel := range map[string]int{queue: cfg.Parallel, requestQueue(queue): cfg.Requests} {
			options.MaxConcurrentActivityExecutionSize, options.MaxConcurrentLocalActivityExecutionSize = parallel, parallel
			w := worker.New(c, name, options)
			register(w, runner)
			if err := w.Start(); err != nil {
				return fmt.Errorf("the worker cannot start: %w", err)
			}
			running.Go(func() {
				<-stop
				w.Stop()
			})
		}
		queues = append(queues, queue)
	}
	if cfg.Ready != nil {
		cfg.Ready(queues, func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		})
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("the worker has lost Temporal: %w", err)
	}
	return err
}

// registry is what a worker and a test of workflows have in common.
type registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// register adds the workflow and the activities.
func register(w registry, r *chunkRunner) {
	for _, name := range []string{workflowName, servedName} {
		w.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: name})
	}
	w.RegisterActivityWithOptions(r.run, activity.RegisterOptions{Name: activityName})
	w.RegisterActivityWithOptions(r.keep, activity.RegisterOptions{Name: keepName})
}

package temporal

import (
	"context"
	"crypto/rand"
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

const (
	stopTimeout = 10 * time.Second // for chunks whose calls have ended, to store what is finished
	stickyTime  = time.Second      // for which a workflow waits for the worker that has it in memory, which may have been killed
)

// Work runs chunks of the flows of the application until ctx ends.
func (e Engine) Work(ctx context.Context, app *runtime.App, cfg durable.WorkerConfig) (err error) {
	cfg.Config = e.complete(cfg.Config)
	c, err := dialMeasured(ctx, cfg.Config, cfg.Log, registryOf(cfg.Metrics))
	if err != nil {
		return err
	}
	defer c.Close()
	failed := make(chan error, 1)
	pollers := worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 2}
	options := worker.Options{
		WorkerStopTimeout:            cfg.Drain + stopTimeout,
		BackgroundActivityContext:    context.WithoutCancel(ctx), // with observers and the audit log
		ActivityTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(pollers),
		WorkflowTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(pollers),
		StickyScheduleToStartTimeout: stickyTime,
		OnFatalError: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	}
	place := newBlobs(cfg.Config)
	defer func() { err = errors.Join(err, place.client.Close()) }()
	runner := &chunkRunner{app: app, blobs: place, beat: c.RecordActivityHeartbeat, isCanceled: func(ctx context.Context, run workflow.Execution) bool { return isCanceled(ctx, c, run.ID, run.RunID) }, inWaves: cfg.InWaves, approved: cfg.Approved, answered: cfg.ClientTools, drain: cfg.Drain, queue: "qtype-worker-" + rand.Text(), slots: map[string]slots{}}
	for _, flow := range app.Spec().Flows {
		runner.slots[flow.ID] = make(slots, cfg.Requests)
	}
	var queues []string
	var running sync.WaitGroup
	defer runner.ongoing.Wait()
	defer running.Wait()
	stop := make(chan struct{})
	defer close(stop)
	runner.stopping = stop
	start := func(queue string, options worker.Options) error {
		w := worker.New(c, queue, options)
		if !options.DisableWorkflowWorker {
			registerWorkflows(w)
		}
		registerActivities(w, runner)
		if err := w.Start(); err != nil {
			return fmt.Errorf("the worker cannot start: %w", err)
		}
		running.Go(func() {
			<-stop
			w.Stop()
		})
		return nil
	}
	own := options
	own.DisableWorkflowWorker = true
	if err := start(runner.queue, own); err != nil {
		return err
	}
	for _, flow := range app.Spec().Flows {
		queue := queueOf(app.Spec(), flow, newSealer(cfg.Config))
		chunks, requests := options, options
		chunks.MaxConcurrentActivityExecutionSize, chunks.MaxConcurrentLocalActivityExecutionSize = cfg.Parallel, cfg.Parallel
		if requests.Tuner, err = tuner(runner.slots[flow.ID], cfg.Requests); err != nil {
			return err
		}
		if err := errors.Join(start(queue, chunks), start(requestQueue(queue), requests)); err != nil {
			return err
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

// tuner limits the requests of a flow to the slots. Local activities only compute, or take a slot themselves.
func tuner(limit slots, requests int) (worker.WorkerTuner, error) {
	const workflows, none = 1000, 1 // workflow tasks, as by default
	var fixed []worker.SlotSupplier
	for _, n := range []int{workflows, 2 * requests, none} {
		s, err := worker.NewFixedSizeSlotSupplier(n)
		if err != nil {
			return nil, err
		}
		fixed = append(fixed, s)
	}
	return worker.NewCompositeTuner(worker.CompositeTunerOptions{
		WorkflowSlotSupplier: fixed[0], ActivitySlotSupplier: limit, LocalActivitySlotSupplier: fixed[1],
		NexusSlotSupplier: fixed[2], SessionActivitySlotSupplier: fixed[2],
	})
}

// registry is what a worker and a test of workflows have in common.
type registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// registerWorkflows adds the workflows.
func registerWorkflows(w registry) {
	for _, name := range []string{workflowName, servedName} {
		w.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: name})
	}
	w.RegisterWorkflowWithOptions(runLane, workflow.RegisterOptions{Name: laneName})
}

// registerActivities adds the activities.
func registerActivities(w registry, r *chunkRunner) {
	w.RegisterActivityWithOptions(r.run, activity.RegisterOptions{Name: activityName})
	w.RegisterActivityWithOptions(r.begin, activity.RegisterOptions{Name: beginName})
	w.RegisterActivityWithOptions(r.keep, activity.RegisterOptions{Name: keepName})
}

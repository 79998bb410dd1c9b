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
	place := newBlobs(cfg.Config)
	defer func() { err = errors.Join(err, place.client.Close()) }()
	stop := make(chan struct{})
	l := &listener{client: c, runner: newChunkRunner(c, app, place, cfg), stop: stop, failed: make(chan error, 1)}
	l.runner.stopping = stop
	defer l.runner.ongoing.Wait()
	defer l.running.Wait()
	defer close(stop)
	queues, err := l.listenToAll(ctx, app, cfg)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(queues, func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		})
	}
	select {
	case <-ctx.Done():
	case err = <-l.failed:
		err = fmt.Errorf("the worker has lost Temporal: %w", err)
	}
	return err
}

// newChunkRunner returns what runs the chunks of an application.
func newChunkRunner(c client.Client, app *runtime.App, place *blobs, cfg durable.WorkerConfig) *chunkRunner {
	w := &chunkRunner{
		app: app, blobs: place, beat: c.RecordActivityHeartbeat, inWaves: cfg.InWaves, approved: cfg.Approved, answered: cfg.ClientTools,
		drain: cfg.Drain, queue: "qtype-worker-" + rand.Text(), slots: map[string]slots{},
		isCanceled: func(ctx context.Context, run workflow.Execution) bool { return isCanceled(ctx, c, run.ID, run.RunID) },
	}
	for _, flow := range app.Spec().Flows {
		w.slots[flow.ID] = make(slots, cfg.Requests)
	}
	return w
}

// listener takes the tasks of queues until stop is closed.
type listener struct {
	client  client.Client
	runner  *chunkRunner
	stop    <-chan struct{}
	failed  chan error // gets why it cannot go on
	running sync.WaitGroup
}

// listenToAll listens to the queue of the worker and to those of the flows, and returns the names of these.
func (l *listener) listenToAll(ctx context.Context, app *runtime.App, cfg durable.WorkerConfig) (queues []string, err error) {
	options := l.options(ctx, cfg)
	own := options
	own.DisableWorkflowWorker = true
	if err := l.listen(l.runner.queue, own); err != nil {
		return nil, err
	}
	for _, flow := range app.Spec().Flows {
		queue := queueOf(app.Spec(), flow, newSealer(cfg.Config))
		chunks, requests := options, options
		chunks.MaxConcurrentActivityExecutionSize, chunks.MaxConcurrentLocalActivityExecutionSize = cfg.Parallel, cfg.Parallel
		if requests.Tuner, err = tuner(l.runner.slots[flow.ID], cfg.Requests); err != nil {
			return nil, err
		}
		if err := errors.Join(l.listen(queue, chunks), l.listen(requestQueue(queue), requests)); err != nil {
			return nil, err
		}
		queues = append(queues, queue)
	}
	return queues, nil
}

// options returns what the workers of all queues have in common.
func (l *listener) options(ctx context.Context, cfg durable.WorkerConfig) worker.Options {
	pollers := worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 2}
	return worker.Options{
		WorkerStopTimeout:            cfg.Drain + stopTimeout,
		BackgroundActivityContext:    context.WithoutCancel(ctx), // with observers and the audit log
		ActivityTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(pollers),
		WorkflowTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(pollers),
		StickyScheduleToStartTimeout: stickyTime,
		OnFatalError: func(err error) {
			select {
			case l.failed <- err:
			default:
			}
		},
	}
}

// listen takes the tasks of a queue.
func (l *listener) listen(queue string, options worker.Options) error {
	w := worker.New(l.client, queue, options)
	if !options.DisableWorkflowWorker {
		registerWorkflows(w)
	}
	registerActivities(w, l.runner)
	if err := w.Start(); err != nil {
		return fmt.Errorf("the worker cannot start: %w", err)
	}
	l.running.Go(func() {
		<-l.stop
		w.Stop()
	})
	return nil
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

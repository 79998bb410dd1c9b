package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// oneWorkflow is a client of Temporal that has one workflow, which runs in the SDK's environment of tests with the
// activity of a worker.
type oneWorkflow struct {
	client.Client
	env     *testsuite.TestWorkflowEnvironment
	ended   chan struct{}
	updates chan func() // given to the environment while the workflow waits
	ids     []string
}

// wait gives the workflow the next update when it does nothing else: its clock goes on only then.
func (c *oneWorkflow) wait(over <-chan struct{}) {
	c.env.RegisterDelayedCallback(func() {
		select {
		case update := <-c.updates:
			update()
			c.wait(over)
		case <-over:
		}
	}, time.Second)
}

// newServer returns a server whose runs are workflows of the runner.
func newServer(t *testing.T, w *chunkRunner) (*Server, *oneWorkflow) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: servedName})
	env.RegisterActivityWithOptions(w.run, activity.RegisterOptions{Name: activityName})
	env.RegisterActivityWithOptions(w.begin, activity.RegisterOptions{Name: beginName})
	env.SetTestTimeout(time.Minute)
	c := &oneWorkflow{env: env, ended: make(chan struct{}), updates: make(chan func())}
	c.wait(t.Context().Done())
	cfg := durable.Config{Blobs: w.blobs.base, Heartbeat: time.Minute}
	return &Server{starting: newGate(maxStarts, maxStartsWaiting), cfg: cfg, client: c, log: slog.New(slog.DiscardHandler)}, c
}

// ExecuteWorkflow starts the workflow.
func (c *oneWorkflow) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, name any, args ...any) (client.WorkflowRun, error) {
	c.ids = append(c.ids, o.ID)
	go func() {
		defer close(c.ended)
		c.env.ExecuteWorkflow(name, args...)
	}()
	return nil, nil
}

// GetWorkflow returns the workflow, and Get waits for its end.
func (c *oneWorkflow) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return &endOf{c: c}
}

// endOf is the end of the workflow.
type endOf struct {
	client.WorkflowRun
	c *oneWorkflow
}

// Get waits for the end of the workflow.
func (e *endOf) Get(ctx context.Context, result any) error {
	select {
	case <-e.c.ended:
		if err := e.c.env.GetWorkflowError(); err != nil || result == nil {
			return err
		}
		return e.c.env.GetWorkflowResult(result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// UpdateWorkflow gives an answer to the workflow.
func (c *oneWorkflow) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	done := make(chan error, 1)
	update := func() {
		c.env.UpdateWorkflow(o.UpdateName, "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { done <- err }, OnAccept: func() {}, OnComplete: func(_ any, err error) { done <- err },
		}, o.Args...)
	}
	select {
	case c.updates <- update:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err := <-done:
		return taken{}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// taken is an update that is complete.
type taken struct{ client.WorkflowUpdateHandle }

// Get returns no error.
func (taken) Get(context.Context, any) error { return nil }

// DescribeTaskQueue reports nothing.
func (c *oneWorkflow) DescribeTaskQueue(context.Context, string, enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return nil, errors.New("not known")
}

// answerDesk gives a run of the desk its answers, and waits for its end.
func answerDesk(t *testing.T, m *runs.Manager, run *runs.Run) {
	t.Helper()
	yes := true
	for _, a := range []runs.Answer{{Approved: &yes}, {Result: json.RawMessage(`{"city": "Graz"}`)}} {
		if waiting, err := run.Settle(t.Context()); err != nil || !waiting {
			t.Fatalf("%v, %v: %+v, %v", waiting, err, run.State(), run.Err())
		}
		a.ID = run.State().Pending[0].ID
		testkit.Must(t, m.Answer(access.WithPrincipal(t.Context(), access.Principal{Name: "ada"}), run, &a))
	}
	testkit.Must(t, run.Wait(t.Context()))
}

// TestServer: a run of a server is a workflow. Its events, requests, answers and results are those of a run in the
// process of the server.
func TestServer(t *testing.T) {
	w, model, _ := openDesk(t)
	w.slots = map[string]slots{"main": make(slots, 1)} // the first workflow task begins the chunk
	server, temporal := newServer(t, w)
	flow, err := w.app.Flow("main")
	testkit.Must(t, err)
	m := runs.NewManager(runs.Options{Engine: server})
	run, err := m.Begin(t.Context(), runs.Start{App: w.app, Flow: flow, Owner: "ada", Session: "s", Events: true, Rows: []map[string]any{{"text": "refund order 7"}}})
	testkit.Must(t, err)
	answerDesk(t, m, run)
	s := run.State()
	if s.Status != runs.Succeeded || len(s.Results) != 1 || !strings.Contains(s.Results[0].Outputs[0].(string), "Graz") {
		t.Fatalf("%+v", s)
	}
	var got []string
	for _, ev := range run.Events(run.Count()) {
		if ev.Type != runs.UsageReported {
			got = append(got, strings.TrimSpace(string(ev.Type)+" "+ev.Tool))
		}
	}
	want := []string{
		"run.started", "step.started", "tool.called lookup", "tool.returned lookup", "tool.called refund", "request.opened refund", "request.answered refund", "tool.returned refund",
		"tool.called locate", "request.opened locate", "request.answered locate", "tool.returned locate", "text.delta", "step.finished", "row.finished", "run.finished",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for call, n := range model.counts {
		if n != 1 {
			t.Errorf("call %s was made %d times", call, n)
		}
	}
	if len(temporal.ids) != 1 || !strings.HasPrefix(temporal.ids[0], "qtype-desk-main-"+run.ID+"-") {
		t.Errorf("workflows %q", temporal.ids)
	}
	testkit.Must(t, m.Shutdown(t.Context()))
}

// away is a client of a Temporal that does not answer at first.
type away struct {
	*oneWorkflow
	starts, ends int // calls without an answer
}

// ExecuteWorkflow starts the workflow.
func (c *away) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, name any, args ...any) (client.WorkflowRun, error) {
	if c.starts--; c.starts >= 0 {
		return nil, serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "busy")
	}
	return c.oneWorkflow.ExecuteWorkflow(ctx, o, name, args...)
}

// CancelWorkflow knows no workflow.
func (c *away) CancelWorkflow(context.Context, string, string) error {
	return serviceerror.NewNotFound("not started")
}

// GetWorkflow returns the workflow, and Get waits for its end.
func (c *away) GetWorkflow(ctx context.Context, id, run string) client.WorkflowRun {
	if c.ends--; c.ends >= 0 {
		return &noAnswer{}
	}
	return c.oneWorkflow.GetWorkflow(ctx, id, run)
}

// noAnswer is a workflow of a Temporal that is away.
type noAnswer struct{ client.WorkflowRun }

// Get returns an error.
func (*noAnswer) Get(context.Context, any) error { return serviceerror.NewUnavailable("away") }

// TestServer_Away: a run that Temporal does not take is refused with the time after which to try again. One that it has taken waits
// while Temporal is away.
func TestServer_Away(t *testing.T) {
	for _, test := range []struct{ starts, ends int }{{starts: 1, ends: 1}, {ends: 3}} {
		w, _, _ := openDesk(t)
		server, workflows := newServer(t, w)
		server.client = &away{workflows, test.starts, test.ends}
		flow, err := w.app.Flow("main")
		testkit.Must(t, err)
		m := runs.NewManager(runs.Options{Engine: server})
		run, err := m.Begin(t.Context(), runs.Start{App: w.app, Flow: flow, Owner: "ada", Session: "s", Events: true, Rows: []map[string]any{{"text": "refund order 7"}}})
		testkit.Must(t, err)
		if test.starts == 0 {
			answerDesk(t, m, run)
		}
		testkit.Must(t, run.Wait(t.Context()))
		if p := problem.Of(run.Err()); test.starts > 0 && (p == nil || p.Status != http.StatusServiceUnavailable || p.RetryAfter != startRetry) {
			t.Errorf("got %v, %v", p, err)
		}
		if s := run.State(); test.starts == 0 && len(s.Results) != 1 {
			t.Errorf("got %+v", s)
		}
		testkit.Must(t, m.Shutdown(t.Context()))
	}
}

package temporal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/telemetry"
)

// TestTracing: activities, and the workflow that continues one, have the trace of the caller.
func TestTracing(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	trace, err := converter.GetDefaultDataConverter().ToPayload(http.Header{"Traceparent": {parent}})
	if err != nil {
		t.Fatal(err)
	}
	for _, local := range []bool{false, true} {
		t.Run(fmt.Sprintf("local=%t", local), func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			suite.SetContextPropagators([]workflow.ContextPropagator{tracing{}})
			suite.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{traceHeader: trace}})
			env := suite.NewTestWorkflowEnvironment()
			env.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: workflowName})
			env.RegisterActivityWithOptions(func(ctx context.Context, _ task) (done, error) {
				if got := telemetry.TraceHeader(ctx).Get("traceparent"); got != parent {
					t.Errorf("an activity has the trace %q", got)
				}
				env.SetCurrentHistoryLength(historyLimit)
				return done{Rows: 1}, nil
			}, activity.RegisterOptions{Name: activityName})
			p := planFor(2)
			p.Local = local
			env.ExecuteWorkflow(workflowName, p)
			var next *workflow.ContinueAsNewError
			if err := env.GetWorkflowError(); !errors.As(err, &next) || next.Header.GetFields()[traceHeader] == nil {
				t.Errorf("the next workflow has no trace: %v", err)
			}
		})
	}
}

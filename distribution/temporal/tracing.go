package temporal

import (
	"context"
	"net/http"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/telemetry"
)

// traceHeader is the header of workflows and activities with the trace of the caller. It is not encrypted.
const traceHeader = "qtype-trace"

type traceKey struct{}

// tracing lets the trace of the caller of a workflow continue on workers. It is a workflow.ContextPropagator.
type tracing struct{}

// Inject writes the trace of the caller.
func (tracing) Inject(ctx context.Context, to workflow.HeaderWriter) error {
	return writeTrace(telemetry.TraceHeader(ctx), to)
}

// InjectFromWorkflow passes the trace on to activities and to the workflow that continues this one.
func (tracing) InjectFromWorkflow(ctx workflow.Context, to workflow.HeaderWriter) error {
	trace, _ := ctx.Value(traceKey{}).(http.Header)
	return writeTrace(trace, to)
}

func writeTrace(trace http.Header, to workflow.HeaderWriter) error {
	if len(trace) == 0 {
		return nil
	}
	value, err := converter.GetDefaultDataConverter().ToPayload(trace)
	if err == nil {
		to.Set(traceHeader, value)
	}
	return err
}

// Extract returns the context of an activity.
func (tracing) Extract(ctx context.Context, from workflow.HeaderReader) (context.Context, error) {
	return telemetry.RemoteContext(ctx, readTrace(from)), nil
}

// ExtractToWorkflow returns the context of a workflow.
func (tracing) ExtractToWorkflow(ctx workflow.Context, from workflow.HeaderReader) (workflow.Context, error) {
	return workflow.WithValue(ctx, traceKey{}, readTrace(from)), nil
}

// readTrace returns the trace of the caller; nil if there is none, or if another program has written it.
func readTrace(from workflow.HeaderReader) (trace http.Header) {
	if value, ok := from.Get(traceHeader); ok && converter.GetDefaultDataConverter().FromPayload(value, &trace) != nil {
		return nil
	}
	return trace
}

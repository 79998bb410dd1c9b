package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// RemoteContext returns a context in which traces continue the trace of a request with
// the header traceparent (W3C Trace Context); ctx without a valid one.
func RemoteContext(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

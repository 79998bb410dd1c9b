package telemetry

import (
	"context"
	"net/http"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/steps"
)

// The names of the parts.
const (
	PartOTLP    = "otlp"    // sends traces
	PartMetrics = "metrics" // serves them
)

// Parts are what a program may have for telemetry. The core has neither: what these formats are written with is large.
type Parts struct {
	OTLP    Encoder                    // of traces that are sent; nil for none
	Metrics func(process bool) Metrics // returns metrics that have counted nothing; with process also those of the process; nil for none
}

// Encoder returns the body of a request of OTLP in protobuf.
type Encoder func(ctx context.Context, spans []sdktrace.ReadOnlySpan) ([]byte, error)

// Metrics counts and measures the operations of runs. It is safe for concurrent use.
type Metrics interface {
	steps.Observer
	// Request counts an HTTP request. route is the pattern of the route, not the path of the request:
	// "POST /flows/{id}".
	Request(route, method string, status int, took time.Duration)
	// Handler returns the handler of /metrics.
	Handler() http.Handler
}

// Names returns the names of the parts that are there.
func (p Parts) Names() []string {
	var names []string
	if p.OTLP != nil {
		names = append(names, PartOTLP)
	}
	if p.Metrics != nil {
		names = append(names, PartMetrics)
	}
	return names
}

// NewMetrics returns metrics of runs and of the process; a *parts.MissingError if the program has none.
func (p Parts) NewMetrics() (Metrics, error) {
	if p.Metrics == nil {
		return nil, &parts.MissingError{Kind: parts.Telemetry, Name: PartMetrics}
	}
	return p.Metrics(true), nil
}

type partsKey struct{}

// WithParts returns a context of a program with these parts.
func WithParts(ctx context.Context, p Parts) context.Context {
	return context.WithValue(ctx, partsKey{}, p)
}

// PartsOf returns the parts of the program of a context; none without WithParts.
func PartsOf(ctx context.Context) Parts {
	p, _ := ctx.Value(partsKey{}).(Parts)
	return p
}

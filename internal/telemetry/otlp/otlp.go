// Package otlp encodes traces in protobuf, as servers of OTLP take them.
package otlp

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Encode returns the body of a request. It is a telemetry.Encoder.
func Encode(ctx context.Context, spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	var b body
	err := otlptrace.NewUnstarted(&b).ExportSpans(ctx, spans)
	return b, err
}

// body is an otlptrace.Client that keeps what it sends.
type body []byte

// Start does nothing.
func (b *body) Start(context.Context) error { return nil }

// Stop does nothing.
func (b *body) Stop(context.Context) error { return nil }

// UploadTraces encodes spans. TracesData has the same encoding as a request of the collector.
func (b *body) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) (err error) {
	*b, err = proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	return err
}

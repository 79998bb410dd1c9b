package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/redact"
)

// redactedExporter sends spans without secrets.
type redactedExporter struct {
	sdktrace.SpanExporter
	redactor *redact.Redactor
}

// ExportSpans sends spans.
func (e *redactedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.redactor.Empty() {
		return e.SpanExporter.ExportSpans(ctx, spans)
	}
	shown := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		shown[i] = &redactedSpan{s, e.redactor}
	}
	return e.redactor.Error(e.SpanExporter.ExportSpans(ctx, shown))
}

// redactedSpan is a span without secrets in its texts.
type redactedSpan struct {
	sdktrace.ReadOnlySpan
	redactor *redact.Redactor
}

// Name returns the name of the span.
func (s *redactedSpan) Name() string { return s.redactor.String(s.ReadOnlySpan.Name()) }

// Attributes returns the attributes of the span.
func (s *redactedSpan) Attributes() []attribute.KeyValue {
	return redactAttributes(s.redactor, s.ReadOnlySpan.Attributes())
}

// Events returns the events of the span.
func (s *redactedSpan) Events() []sdktrace.Event {
	events := append([]sdktrace.Event(nil), s.ReadOnlySpan.Events()...)
	for i := range events {
		events[i].Attributes = redactAttributes(s.redactor, events[i].Attributes)
	}
	return events
}

// Status returns the status of the span.
func (s *redactedSpan) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = s.redactor.String(status.Description)
	return status
}

func redactAttributes(r *redact.Redactor, all []attribute.KeyValue) []attribute.KeyValue {
	shown := make([]attribute.KeyValue, len(all))
	for i, a := range all {
		switch a.Value.Type() {
		case attribute.STRING:
			a.Value = attribute.StringValue(r.String(a.Value.AsString()))
		case attribute.STRINGSLICE:
			texts := append([]string(nil), a.Value.AsStringSlice()...)
			for j := range texts {
				texts[j] = r.String(texts[j])
			}
			a.Value = attribute.StringSliceValue(texts)
		}
		shown[i] = a
	}
	return shown
}

package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/qtype-dev/qtype/steps"
)

// scope is the name of the instrumentation in traces.
const scope = "github.com/qtype-dev/qtype"

// TracerOptions are what a Tracer writes to spans.
type TracerOptions struct {
	// HideContent leaves out the inputs and outputs of flows, steps, models and tools.
	// Names, numbers, times and errors remain.
	HideContent bool
	// MaxText is the maximum length of one text in bytes; 0 means 64 KiB.
	MaxText int
}

// Tracer makes OpenTelemetry spans of the operations of runs. It is a steps.Observer.
// Its attributes are those of OpenInference and of the conventions for generative AI.
type Tracer struct {
	tracer  trace.Tracer
	content content
}

// NewTracer returns a Tracer that starts spans with a provider.
func NewTracer(provider trace.TracerProvider, o TracerOptions) *Tracer {
	if o.MaxText <= 0 {
		o.MaxText = 64 << 10
	}
	return &Tracer{tracer: provider.Tracer(scope), content: content{hidden: o.HideContent, max: o.MaxText}}
}

// describer makes the spans of one kind of operations.
type describer struct {
	name  func(*steps.Operation) string
	kind  trace.SpanKind
	start func(content, *steps.Operation) []attribute.KeyValue
	end   func(content, *steps.Operation, *steps.OperationResult) []attribute.KeyValue
}

// named returns a function for names of the form prefix, id, suffix.
func named(prefix, suffix string) func(*steps.Operation) string {
	return func(op *steps.Operation) string { return prefix + op.ID + suffix }
}

// describers is the table of the kinds of operations.
var describers = map[steps.OperationKind]describer{
	steps.OperationFlow:  {named("flow.", ""), trace.SpanKindInternal, flowStart, flowEnd},
	steps.OperationStep:  {named("step.", ""), trace.SpanKindInternal, stepStart, stepEnd},
	steps.OperationRow:   {named("step.", ".process_message"), trace.SpanKindInternal, rowStart, rowEnd},
	steps.OperationBatch: {named("step.", ".process_batch"), trace.SpanKindInternal, batchStart, batchEnd},
	steps.OperationModel: {func(op *steps.Operation) string { return "chat " + op.Model.Name },
		trace.SpanKindClient, modelStart, modelEnd},
	steps.OperationEmbedding: {func(op *steps.Operation) string { return "embeddings " + op.Model.Name },
		trace.SpanKindClient, embeddingStart, embeddingEnd},
	steps.OperationTool: {func(op *steps.Operation) string { return "execute_tool " + op.Tool.Name },
		trace.SpanKindInternal, toolStart, toolEnd},
	steps.OperationMemory:    {named("memory.", ""), trace.SpanKindInternal, memoryStart, memoryEnd},
	steps.OperationRetrieval: {named("memory.", ".retrieve"), trace.SpanKindInternal, retrievalStart, retrievalEnd},
}

// Observes reports whether operations of a kind are spans.
func (t *Tracer) Observes(kind steps.OperationKind) bool {
	_, ok := describers[kind]
	return ok
}

// Start starts the span of an operation.
func (t *Tracer) Start(ctx context.Context, op *steps.Operation) steps.Span {
	d, ok := describers[op.Kind]
	if !ok {
		return nil
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(d.kind)}
	if !op.Begun.IsZero() {
		opts = append(opts, trace.WithTimestamp(op.Begun))
	}
	s := &tracedSpan{tracer: t, describer: d, op: *op}
	if s.op.Begun.IsZero() {
		s.op.Begun = time.Now()
	}
	_, s.span = t.tracer.Start(ctx, d.name(op), opts...)
	id := s.span.SpanContext()
	s.id = steps.TraceID{Trace: id.TraceID().String(), Span: id.SpanID().String()}
	if s.span.IsRecording() {
		s.span.SetAttributes(d.start(t.content, op)...)
	}
	s.op.Request, s.op.Texts, s.op.Arguments, s.op.Input = nil, nil, nil, nil
	return s
}

// tracedSpan is the span of one operation.
type tracedSpan struct {
	describer
	tracer *Tracer
	op     steps.Operation
	span   trace.Span
	id     steps.TraceID
}

// Context returns ctx with the span and its id.
func (s *tracedSpan) Context(ctx context.Context) context.Context {
	return steps.WithTraceID(trace.ContextWithSpan(ctx, s.span), s.id)
}

// End sets the results of the operation and ends the span.
func (s *tracedSpan) End(r *steps.OperationResult) {
	if s.span.IsRecording() {
		s.span.SetAttributes(s.end(s.tracer.content, &s.op, r)...)
		s.setStatus(r)
	}
	if r.Ended.IsZero() {
		s.span.End()
		return
	}
	s.span.End(trace.WithTimestamp(r.Ended))
}

// setStatus sets the status of the span, and adds an event for the error. A flow and a
// step have failed if a row has.
func (s *tracedSpan) setStatus(r *steps.OperationResult) {
	whole := s.op.Kind == steps.OperationFlow || s.op.Kind == steps.OperationStep || s.op.Kind == steps.OperationBatch
	switch {
	case r.Err != nil && s.op.Kind == steps.OperationRow:
		s.span.AddEvent("message_failed", trace.WithAttributes(attribute.String("error", r.Err.Error())), at(r.Ended))
		s.span.SetStatus(codes.Error, r.Err.Error())
	case r.Err != nil:
		s.span.RecordError(r.Err, at(r.Ended))
		s.span.SetAttributes(attribute.String("error.type", errorType(r.Err)))
		s.span.SetStatus(codes.Error, r.Err.Error())
	case whole && r.Failed > 0:
		s.span.SetStatus(codes.Error, fmt.Sprintf("%d of %d messages failed", r.Failed, max(r.Read, r.Done, int64(s.op.Rows))))
	default:
		s.span.SetStatus(codes.Ok, "")
	}
}

// at is the time of an event; the zero time is now.
func at(t time.Time) trace.EventOption {
	if t.IsZero() {
		t = time.Now()
	}
	return trace.WithTimestamp(t)
}

package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// kindOf is the attribute with the kind of a span in OpenInference.
func kindOf(kind string) attribute.KeyValue {
	return attribute.String("openinference.span.kind", kind)
}

func flowStart(_ content, op *steps.Operation) []attribute.KeyValue {
	return []attribute.KeyValue{kindOf("CHAIN"), attribute.String("flow.id", op.ID), attribute.Int("flow.step_count", len(op.Flow.Steps))}
}

func flowEnd(c content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	set := []attribute.KeyValue{attribute.Int64("flow.input_count", r.Read), attribute.Int64("flow.output_count", r.Done), attribute.Int64("flow.error_count", r.Failed)}
	if r.Session != "" {
		set = append(set, attribute.String("session.id", r.Session), attribute.String("gen_ai.conversation.id", r.Session))
	}
	return append(append(set, c.fields("input", r.Input)...), c.fields("output", r.Output)...)
}

// stepAttributes are those of the spans of a step.
func stepAttributes(op *steps.Operation) []attribute.KeyValue {
	return []attribute.KeyValue{kindOf(spec.SpanOf(op.Step.Step)), attribute.String("step.id", op.ID), attribute.String("step.type", spec.TypeName(op.Step.Step))}
}

func stepStart(_ content, op *steps.Operation) []attribute.KeyValue {
	return append(stepAttributes(op), attribute.Int("step.concurrency", max(op.Workers, 1)))
}

func stepEnd(_ content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.Int64("step.messages.total", r.Read), attribute.Int64("step.messages.errors", r.Failed)}
}

func rowStart(c content, op *steps.Operation) []attribute.KeyValue {
	set := append(stepAttributes(op), attribute.String("session.id", op.Session), attribute.String("gen_ai.conversation.id", op.Session))
	if op.Row != 0 {
		set = append(set, attribute.Int64("message.row", op.Row))
	}
	return append(set, c.fields("input", op.Input)...)
}

func rowEnd(c content, op *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	set := append(c.fields("output", r.Output), attribute.Int64("message.outputs", r.Done))
	return append(set, foundDocuments(c, op, r.Output)...)
}

func batchStart(_ content, op *steps.Operation) []attribute.KeyValue {
	return append(stepAttributes(op), attribute.Int("batch.size", op.Rows))
}

func batchEnd(_ content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.Int64("batch.outputs", r.Done), attribute.Int64("batch.errors", r.Failed)}
}

func memoryStart(_ content, op *steps.Operation) []attribute.KeyValue {
	return []attribute.KeyValue{kindOf("CHAIN"), attribute.String("memory.id", op.ID), attribute.String("session.id", op.Session)}
}

func memoryEnd(_ content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	t := r.Turn
	if t == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.Int("memory.added", t.Added), attribute.Int("memory.evicted", t.Evicted), attribute.Int("memory.messages", t.Messages),
		attribute.Int("memory.used", t.Used), attribute.Int("memory.limit", t.Limit), attribute.String("memory.unit", string(t.Unit))}
}

func retrievalStart(_ content, op *steps.Operation) []attribute.KeyValue {
	return []attribute.KeyValue{kindOf("RETRIEVER"), attribute.String("memory.id", op.ID)}
}

func retrievalEnd(_ content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	var set []attribute.KeyValue
	for i, position := range r.Retrieved {
		set = append(set, attribute.Int64(indexed("retrieval.documents", i, "document.id"), position))
	}
	return set
}

package telemetry

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

func modelStart(c content, op *steps.Operation) []attribute.KeyValue {
	set := append(calledModel("chat", op), kindOf("LLM"),
		attribute.String("llm.model_name", op.Model.Name), attribute.String("llm.provider", op.Model.Provider), attribute.String("llm.system", op.Model.Provider))
	params := publicParams(op.Params)
	if len(params) > 0 {
		set = append(set, attribute.String("llm.invocation_parameters", string(encode(params))))
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if key := "gen_ai.request." + name; slices.Contains(requestKeys, key) {
			set = append(set, number(key, params[name])...)
		}
	}
	set = append(set, c.failures(op.Failed)...)
	for i, t := range op.Request.Tools {
		schema := map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "description": t.Description, "parameters": t.Parameters}}
		set = append(set, attribute.String(indexed("llm.tools", i, "tool.json_schema"), string(encode(schema))))
	}
	if c.hidden {
		return set
	}
	for i := range op.Request.Messages {
		set = append(set, c.message("llm.input_messages", i, &op.Request.Messages[i])...)
	}
	if n := len(op.Request.Messages); n > 0 {
		set = append(set, c.text("input", op.Request.Messages[n-1].Text())...)
	}
	return set
}

// failures are the attributes of a fallback: which models failed before it, and why.
func (c content) failures(failed []model.Failure) []attribute.KeyValue {
	var set []attribute.KeyValue
	for i, f := range failed {
		set = append(set, attribute.String(indexed("qtype.fallback", i, "model"), f.Model), attribute.String(indexed("qtype.fallback", i, "reason"), f.Reason()))
		if f.Status != 0 {
			set = append(set, attribute.Int(indexed("qtype.fallback", i, "status"), f.Status))
		}
		if !c.hidden {
			set = append(set, attribute.String(indexed("qtype.fallback", i, "error"), c.cut(f.Message)))
		}
	}
	return set
}

// requestKeys are the attributes of the conventions for generative AI that are numbers.
var requestKeys = []string{"gen_ai.request.temperature", "gen_ai.request.max_tokens", "gen_ai.request.top_p", "gen_ai.request.top_k",
	"gen_ai.request.seed", "gen_ai.request.presence_penalty", "gen_ai.request.frequency_penalty"}

// number is an attribute with a number; none if v is something else.
func number(key string, v any) []attribute.KeyValue {
	switch v := v.(type) {
	case int:
		return []attribute.KeyValue{attribute.Int(key, v)}
	case int64:
		return []attribute.KeyValue{attribute.Int64(key, v)}
	case float64:
		return []attribute.KeyValue{attribute.Float64(key, v)}
	}
	return nil
}

// publicParams returns the inference parameters without those whose names are names of
// credentials or headers.
func publicParams(params map[string]any) map[string]any {
	public := map[string]any{}
	for name, v := range params {
		lower := strings.ToLower(name)
		if !slices.ContainsFunc([]string{"key", "secret", "password", "auth", "header", "credential"}, func(s string) bool { return strings.Contains(lower, s) }) &&
			!strings.HasSuffix(lower, "token") {
			public[name] = v
		}
	}
	return public
}

// calledModel are the attributes of calls of models by the conventions for generative AI.
func calledModel(operation string, op *steps.Operation) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.provider.name", op.Model.Provider),
		attribute.String("gen_ai.request.model", op.Model.Name),
		attribute.String("qtype.model.id", op.ID), attribute.Bool("qtype.model.mock", op.Model.Mock),
	}
}

func modelEnd(c content, op *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	var set []attribute.KeyValue
	if !r.FirstDelta.IsZero() {
		set = append(set, attribute.Bool("gen_ai.request.stream", true),
			attribute.Float64("gen_ai.response.time_to_first_chunk", r.FirstDelta.Sub(op.Begun).Seconds()))
	}
	if r.Response == nil {
		return set
	}
	set = append(append(set, usage(op, r)...), attribute.StringSlice("gen_ai.response.finish_reasons", []string{r.Response.Finish}))
	if c.hidden {
		return set
	}
	m := &r.Response.Message
	set = append(set, c.message("llm.output_messages", 0, m)...)
	if text := m.Text(); text != "" || !m.HasCalls() {
		return append(set, c.text("output", text)...)
	}
	return append(set, c.json("output", encode(m.Calls()))...)
}

// usageDetails are the attributes with the tokens that cost more or less than others.
func usageDetails(u model.Usage) []attribute.KeyValue {
	var set []attribute.KeyValue
	if u.CacheWrite > 0 {
		set = append(set, attribute.Int("llm.token_count.prompt_details.cache_write", u.CacheWrite), attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite))
	}
	if u.Reasoning > 0 {
		set = append(set, attribute.Int("llm.token_count.completion_details.reasoning", u.Reasoning), attribute.Int("gen_ai.usage.reasoning.output_tokens", u.Reasoning))
	}
	return set
}

// usage are the attributes with tokens and their cost.
func usage(op *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	used := TokensOf(r)
	if used == nil {
		return nil
	}
	set := []attribute.KeyValue{
		attribute.Int("llm.token_count.prompt", used.Input), attribute.Int("llm.token_count.completion", used.Output), attribute.Int("llm.token_count.total", used.Input+used.Output),
		attribute.Int("gen_ai.usage.input_tokens", used.Input), attribute.Int("gen_ai.usage.output_tokens", used.Output),
	}
	if used.Cached > 0 {
		set = append(set, attribute.Int("llm.token_count.prompt_details.cache_read", used.Cached), attribute.Int("gen_ai.usage.cache_read.input_tokens", used.Cached))
	}
	if used.Estimated {
		set = append(set, attribute.Bool("qtype.usage.estimated", true))
	}
	set = append(set, usageDetails(callUsage(r))...)
	if p := op.Prices; p != nil {
		total := *CostOf(p, r)
		out := total - callUsage(r).Reading().Charge(p, endOf(r))
		set = append(set, attribute.Float64("llm.cost.prompt", total-out), attribute.Float64("llm.cost.completion", out), attribute.Float64("llm.cost.total", total))
	}
	return set
}

func embeddingStart(c content, op *steps.Operation) []attribute.KeyValue {
	set := append(calledModel("embeddings", op), kindOf("EMBEDDING"), attribute.String("embedding.model_name", op.Model.Name))
	if c.hidden {
		return set
	}
	for i, text := range op.Texts {
		set = append(set, attribute.String(indexed("embedding.embeddings", i, "embedding.text"), c.cut(text)))
	}
	if len(op.Texts) == 1 {
		return append(set, c.text("input", op.Texts[0])...)
	}
	return append(set, c.json("input", encode(op.Texts))...)
}

func embeddingEnd(_ content, op *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	return append(usage(op, r), attribute.Int("embedding.vectors", r.Vectors))
}

func toolStart(c content, op *steps.Operation) []attribute.KeyValue {
	set := []attribute.KeyValue{kindOf("TOOL"), attribute.String("tool.name", op.Tool.Name), attribute.String("tool.description", op.Tool.Description),
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", op.Tool.Name), attribute.String("qtype.tool.id", op.ID)}
	if op.CallID != "" {
		set = append(set, attribute.String("tool_call.id", op.CallID), attribute.String("gen_ai.tool.call.id", op.CallID))
	}
	if c.hidden {
		return set
	}
	arguments := value.JSON(value.FromGo(op.Arguments))
	return append(append(set, c.json("input", arguments)...), attribute.String("tool.parameters", c.cut(string(arguments))))
}

func toolEnd(c content, _ *steps.Operation, r *steps.OperationResult) []attribute.KeyValue {
	if r.Err != nil || c.hidden {
		return nil
	}
	if text, ok := r.Returned.(string); ok {
		return c.text("output", text)
	}
	return c.json("output", value.JSON(value.FromGo(r.Returned)))
}

// message are the attributes of a message of a call of a model.
func (c content) message(list string, i int, m *chat.Message) []attribute.KeyValue {
	set := []attribute.KeyValue{attribute.String(indexed(list, i, "message.role"), string(m.Role))}
	if text := c.messageText(m); text != "" {
		set = append(set, attribute.String(indexed(list, i, "message.content"), c.cut(text)))
	}
	if m.Name != "" {
		set = append(set, attribute.String(indexed(list, i, "message.name"), m.Name))
	}
	if m.ToolCallID != "" {
		set = append(set, attribute.String(indexed(list, i, "message.tool_call_id"), m.ToolCallID))
	}
	for j, call := range m.Calls() {
		calls := indexed(list, i, "message.tool_calls")
		set = append(set, attribute.String(indexed(calls, j, "tool_call.id"), call.ID), attribute.String(indexed(calls, j, "tool_call.function.name"), call.Name),
			attribute.String(indexed(calls, j, "tool_call.function.arguments"), c.cut(call.Arguments)))
	}
	return set
}

// indexed returns the name of an attribute of an item of a list.
func indexed(list string, i int, name string) string {
	return list + "." + strconv.Itoa(i) + "." + name
}

// errorType is a short name of an error for the attribute error.type.
func errorType(err error) string {
	if failure, ok := errors.AsType[*model.Error](err); ok {
		if failure.Status != 0 {
			return strconv.Itoa(failure.Status)
		}
		return "model"
	}
	name := reflect.TypeOf(err).String()
	return strings.TrimPrefix(name[strings.LastIndexByte(name, '.')+1:], "*")
}

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

// documentLists are the attributes with the documents that a step has found or sorted, by
// the kind of its spans.
var documentLists = map[string]string{"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}

// foundDocuments are the search results in the outputs of a step: their ids and scores, and
// their texts and metadata unless content is hidden.
func foundDocuments(c content, op *steps.Operation, outputs []value.Field) []attribute.KeyValue {
	list := documentLists[spec.SpanOf(op.Step.Step)]
	if list == "" {
		return nil
	}
	var set []attribute.KeyValue
	for _, f := range outputs {
		results, _ := f.Value.([]any)
		for i, v := range results {
			if r, ok := v.(*value.Record); ok {
				set = append(set, documentAttributes(c, indexed(list, i, "document"), r)...)
			}
		}
	}
	return set
}

// documentAttributes describe one search result.
func documentAttributes(c content, prefix string, r *value.Record) []attribute.KeyValue {
	id, _ := r.Get("doc_id")
	set := []attribute.KeyValue{attribute.String(prefix+".id", value.Text(id))}
	if score, ok := r.Get("score"); ok {
		if n, isNumber := score.(float64); isNumber {
			set = append(set, attribute.Float64(prefix+".score", n))
		}
	}
	if c.hidden {
		return set
	}
	found, _ := r.Get("content")
	chunk, ok := found.(*value.Record)
	if !ok || chunk.Type() != "RAGChunk" {
		return append(set, attribute.String(prefix+".content", c.cut(value.Text(found))))
	}
	text, _ := chunk.Get("content")
	metadata, _ := chunk.Get("metadata")
	return append(set, attribute.String(prefix+".content", c.cut(value.Text(text))), attribute.String(prefix+".metadata", c.cut(value.Text(metadata))))
}

// content writes inputs and outputs to spans, unless they are hidden.
type content struct {
	hidden bool
	max    int // the maximum length of a text in bytes
}

// fields are the attributes with variables; side is input or output.
func (c content) fields(side string, fields []value.Field) []attribute.KeyValue {
	if c.hidden || fields == nil {
		return nil
	}
	return c.json(side, fieldsJSON(fields))
}

// json are the attributes with a JSON value.
func (c content) json(side string, text []byte) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(side+".value", c.cut(string(text))), attribute.String(side+".mime_type", "application/json")}
}

// text are the attributes with a text.
func (c content) text(side, text string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(side+".value", c.cut(text)), attribute.String(side+".mime_type", "text/plain")}
}

// cut shortens a text to the maximum length.
func (c content) cut(text string) string {
	if len(text) <= c.max {
		return text
	}
	n := textfmt.Boundary(text, c.max)
	return fmt.Sprintf("%s [… %d bytes more]", text[:n], len(text)-n)
}

// messageText returns the text of a message; media and items are named, not written.
func (c content) messageText(m *chat.Message) string {
	text := m.Text()
	var b strings.Builder
	b.WriteString(text)
	for _, block := range m.Blocks {
		switch {
		case block.Media():
			fmt.Fprintf(&b, "[%s, %d bytes]", block.Type, len(block.Data))
		case block.IsModels() && block.Text != "":
			fmt.Fprintf(&b, "[%s: %s]", block.Type, block.Text)
		}
		if block.Item != nil {
			b.WriteString(block.Item.String())
		}
	}
	return b.String()
}

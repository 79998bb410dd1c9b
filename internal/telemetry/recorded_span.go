package telemetry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Span is a recorded operation, in the form of the HTTP API.
type Span struct {
	ID         string          `json:"id"`               // 16 hexadecimal digits, as in exported traces
	Parent     string          `json:"parent,omitempty"` // the id of the enclosing span; empty for the run itself
	Name       string          `json:"name"`             // the id of the flow, step, model, tool or memory
	Kind       string          `json:"kind"`             // flow, step, model, tool, embedding or memory
	Step       string          `json:"step,omitempty"`   // the id of the step that it is, or that called it
	Start      time.Time       `json:"start"`            // when it began
	End        *time.Time      `json:"end,omitempty"`    // when it ended; nil while it lasts
	Error      string          `json:"error,omitempty"`  // why it failed
	Attributes map[string]any  `json:"attributes"`       // further properties
	Input      json.RawMessage `json:"input,omitempty"`  // what it was called with
	Output     json.RawMessage `json:"output,omitempty"` // its result
	Tokens     *Tokens         `json:"tokens,omitempty"` // of a call of a model
	Cost       *float64        `json:"cost,omitempty"`   // of a call of a model, in the currency of the document's prices
}

// Tokens are the tokens of a call of a model.
type Tokens struct {
	Input  int `json:"input"`            // tokens read
	Output int `json:"output"`           // tokens written
	Cached int `json:"cached,omitempty"` // of those read, from the provider's prompt cache

	Estimated bool `json:"estimated,omitempty"` // whether they are estimates, because the server reports none
}

// spanOwner keeps the spans of an observer. Its lock guards them.
type spanOwner interface {
	sync.Locker
	// ended is called with the lock when a span has ended.
	ended(s *recordedSpan)
	// release is called without the lock after ended.
	release()
}

// recordedSpan is a span before it is rendered: texts are shared with the run.
type recordedSpan struct {
	owner    spanOwner
	group    *spanGroup // of a RowCollector
	named    bool       // it has the id of a tracer, or there is none
	id       spanID
	trace    string
	parent   *recordedSpan
	above    string // in a copy: the id of parent
	op       steps.Operation
	messages []chat.Message // model: what was sent
	begun    time.Time
	end      time.Time // zero while it lasts
	result   steps.OperationResult
	dropped  bool // the result was too large
}

// newRecordedSpan returns the span of an operation; ctx has the enclosing one of the owner.
func newRecordedSpan(ctx context.Context, owner spanOwner, op *steps.Operation) *recordedSpan {
	s := &recordedSpan{owner: owner, id: newSpanID(), op: *op, begun: op.Begun}
	if outer, ok := ctx.Value(recordedKey{owner}).(*recordedSpan); ok {
		s.parent, s.trace = outer, outer.trace
	} else {
		s.trace = traceOf(ctx)
	}
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	if op.Request != nil {
		s.messages, s.op.Request = slices.Clone(op.Request.Messages), nil
	}
	s.op.Texts, s.op.Input, s.op.Arguments = slices.Clone(op.Texts), slices.Clone(op.Input), maps.Clone(op.Arguments)
	return s
}

// spanID identifies a span within its trace; 0 is no id.
type spanID uint64

func newSpanID() spanID {
	for {
		if id := spanID(rand.Uint64()); id != 0 {
			return id
		}
	}
}

// parseSpanID returns the id of 16 hexadecimal digits.
func parseSpanID(text string) spanID {
	id, _ := strconv.ParseUint(text, 16, 64) // a tracer has written it
	return spanID(id)
}

// String returns the id as 16 hexadecimal digits.
func (id spanID) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return hex.EncodeToString(b[:])
}

// dropResult removes the outputs of a span that is too large.
func (s *recordedSpan) dropResult() {
	r := &s.result
	r.Input, r.Output, r.Returned, s.dropped = nil, nil, nil, true
	if r.Response != nil {
		short := *r.Response
		short.Message = chat.Message{}
		r.Response = &short
	}
}

// spanKinds are the kinds of spans in the HTTP API.
var spanKinds = map[steps.OperationKind]string{
	steps.OperationFlow: "flow", steps.OperationStep: "step", steps.OperationRow: "step", steps.OperationBatch: "step", steps.OperationCacheHit: "step",
	steps.OperationModel: "model", steps.OperationEmbedding: "embedding", steps.OperationTool: "tool",
	steps.OperationMemory: "memory", steps.OperationRetrieval: "memory",
}

// render returns the span in the form of the HTTP API.
func (s *recordedSpan) render() Span {
	out := Span{ID: s.id.String(), Name: s.op.ID, Kind: spanKinds[s.op.Kind], Step: s.step(), Start: s.begun.UTC(), Attributes: map[string]any{"operation": string(s.op.Kind)}, Parent: s.above}
	if !s.end.IsZero() {
		end := s.end.UTC()
		out.End = &end
	}
	if s.result.Err != nil {
		out.Error = s.result.Err.Error()
	}
	out.Tokens, out.Cost = TokensOf(&s.result), CostOf(s.op.Prices, &s.result)
	out.Input, out.Output = s.input(), s.output()
	s.addAttributes(out.Attributes)
	return out
}

// step returns the id of the step that the span is, or that called it.
func (s *recordedSpan) step() string {
	for at := s; at != nil && at.op.Kind != steps.OperationFlow; at = at.parent {
		if at.op.Step != nil {
			return at.op.ID
		}
	}
	return ""
}

// input returns what the operation was called with, as JSON; nil for none.
func (s *recordedSpan) input() json.RawMessage {
	switch {
	case s.messages != nil:
		return encodeMessages(s.messages)
	case s.op.Texts != nil:
		return encode(s.op.Texts)
	case s.op.Arguments != nil:
		return value.JSON(value.FromGo(s.op.Arguments))
	case s.op.Input != nil:
		return fieldsJSON(s.op.Input)
	case s.result.Input != nil:
		return fieldsJSON(s.result.Input)
	}
	return nil
}

// output returns the result of the operation, as JSON; nil for none.
func (s *recordedSpan) output() json.RawMessage {
	r := &s.result
	switch {
	case s.dropped, s.end.IsZero():
		return nil
	case r.Response != nil:
		return encode(r.Response.Message.Redacted())
	case r.Output != nil:
		return fieldsJSON(r.Output)
	case s.op.Kind == steps.OperationTool && r.Err == nil:
		return value.JSON(value.FromGo(r.Returned))
	case r.Retrieved != nil:
		return encode(map[string]any{"messages": r.Retrieved})
	}
	return nil
}

// addAttributes adds the properties that the fields of a Span do not have.
func (s *recordedSpan) addAttributes(to map[string]any) {
	set := func(name string, v any, is bool) {
		if is {
			to[name] = v
		}
	}
	op, r := &s.op, &s.result
	set("trace_id", s.trace, s.parent == nil)
	set("row", op.Row, op.Row != 0)
	set("rows", op.Rows, op.Rows != 0)
	if op.Step != nil {
		to["step_type"] = spec.TypeName(op.Step.Step)
	}
	if m := op.Model; m != nil {
		to["provider"], to["model"] = m.Provider, m.Name
		set("mock", true, m.Mock)
	}
	set("call_id", op.CallID, op.CallID != "")
	set("cached", true, op.Kind == steps.OperationCacheHit)
	set("fallback", true, len(op.Failed) > 0)
	set("session", op.Session, op.Session != "")
	set("first_token_ms", milliseconds(r.FirstDelta.Sub(s.begun)), !r.FirstDelta.IsZero())
	if r.Response != nil {
		to["finish_reason"] = r.Response.Finish
		set("dropped", strings.Join(r.Response.Dropped, "; "), len(r.Response.Dropped) > 0)
	}
	set("vectors", r.Vectors, r.Vectors != 0)
	set("outputs", r.Done, op.Kind == steps.OperationFlow || op.Kind == steps.OperationBatch)
	set("failed", r.Failed, r.Failed != 0)
	set("result_too_large", true, s.dropped)
	if t := r.Turn; t != nil {
		to["added"], to["messages"], to["used"], to["limit"], to["unit"] = t.Added, t.Messages, t.Used, t.Limit, string(t.Unit)
		set("evicted", t.Evicted, t.Evicted != 0)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// encode returns v as JSON; null if it cannot be encoded.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// encodeMessages returns the messages of a call of a model as JSON, with the names of their items.
func encodeMessages(messages []chat.Message) json.RawMessage {
	shown := make([]chat.Message, len(messages))
	for i := range messages {
		shown[i] = messages[i].Redacted()
	}
	return encode(map[string]any{"messages": shown})
}

// fieldsJSON returns variables as a JSON object.
func fieldsJSON(fields []value.Field) json.RawMessage {
	return value.JSON(value.NewRecord("", fields...))
}

// TokensOf returns the tokens of a call of a model, nil for other operations.
func TokensOf(r *steps.OperationResult) *Tokens {
	u := callUsage(r)
	if u.Input == 0 && u.Output == 0 {
		return nil
	}
	return &Tokens{Input: u.Input, Output: u.Output, Cached: u.Cached, Estimated: u.Estimated}
}

// CostOf returns the cost of a call of a model, nil if its prices are unknown.
func CostOf(p *catalogue.Prices, r *steps.OperationResult) *float64 {
	used := TokensOf(r)
	if p == nil || used == nil {
		return nil
	}
	cost := callUsage(r).Charge(p, endOf(r))
	return &cost
}

// callUsage returns what a call of a model used.
func callUsage(r *steps.OperationResult) model.Usage {
	if r.Response != nil {
		return r.Response.Usage
	}
	return r.Usage
}

// endOf returns when an operation ended, for its prices.
func endOf(r *steps.OperationResult) time.Time {
	if r.Ended.IsZero() {
		return time.Now()
	}
	return r.Ended
}

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

// spanOverhead is the approximate size of a span without inputs and outputs, in bytes.
const spanOverhead = 1500

// size returns the approximate size of a span that begins, in bytes. Texts that several
// spans share count in each of them.
func (s *recordedSpan) size() int64 {
	n := int64(spanOverhead)
	for i := range s.messages {
		n += messageSize(&s.messages[i])
	}
	for _, text := range s.op.Texts {
		n += int64(len(text))
	}
	for _, v := range s.op.Arguments {
		n += sizeOf(v)
	}
	return n + fieldsSize(s.op.Input)
}

// resultSize returns the approximate size of what an operation returned, in bytes.
func resultSize(r *steps.OperationResult) int64 {
	n := fieldsSize(r.Input) + fieldsSize(r.Output) + sizeOf(r.Returned) + int64(8*len(r.Retrieved))
	if r.Response != nil {
		n += messageSize(&r.Response.Message)
	}
	return n
}

func messageSize(m *chat.Message) int64 {
	n := int64(128)
	for i := range m.Blocks {
		b := &m.Blocks[i]
		n += int64(b.Size()) + int64(len(b.Data))/3 // data is written in base64
	}
	return n
}

func fieldsSize(fields []value.Field) int64 {
	n := int64(0)
	for _, f := range fields {
		n += int64(len(f.Name)) + sizeOf(f.Value)
	}
	return n
}

// sizeOf returns the approximate size of a value.
func sizeOf(v any) int64 {
	n := int64(16)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case []byte:
		n += int64(len(v))
	case chat.Message:
		n += messageSize(&v)
	case []any:
		for _, item := range v {
			n += sizeOf(item)
		}
	case map[string]any:
		for name, item := range v {
			n += int64(len(name)) + sizeOf(item)
		}
	case *value.Record:
		if v == nil {
			break
		}
		for name, item := range v.All() {
			n += int64(len(name)) + sizeOf(item)
		}
	}
	return n
}

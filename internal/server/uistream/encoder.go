// Package uistream is the adapter for the UI message stream of the AI SDK, version 1: it
// reads the requests of chat clients and writes the events of a run as chunks.
package uistream

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Header is the name and the value of the header that identifies the protocol.
const (
	Header        = "X-Vercel-Ai-Ui-Message-Stream"
	HeaderVersion = "v1"
)

// Encoder writes the events of one run as server-sent events. The same events give the
// same text, so that a stream can be resumed behind any of them. It is not safe for
// concurrent use.
type Encoder struct {
	flow    *schema.Flow
	run     string
	answer  map[string]bool // steps whose text is the answer; nil: all
	clients map[string]bool // names of the tools that the client runs
	n       int             // frames written
	skip    int             // frames that the client has

	open            []openPart     // in the order in which they were opened
	parts           int            // parts that were opened
	streamed        map[int64]bool // rows whose answer was streamed
	results         map[int64]int  // of each row so far
	calls           runs.CallIDs
	called          map[string]bool        // calls that were written
	toolFailed      map[string]bool        // calls whose failure was written
	cited           map[int64][]chat.Block // sources of each row's answer
	usage           runs.Usage
	spanID, traceID string // of the newest result, for feedback
	failed          bool   // an error was written
	waiting         int    // the requests without an answer
	ended           bool
}

// NewEncoder returns an Encoder. clientTools are the names of the tools that the client
// of the run offers itself; those that the flow declares are known.
func NewEncoder(flow *schema.Flow, run string, clientTools []string) *Encoder {
	e := &Encoder{flow: flow, run: run, clients: map[string]bool{}, streamed: map[int64]bool{}, results: map[int64]int{}, cited: map[int64][]chat.Block{}, called: map[string]bool{}, toolFailed: map[string]bool{}}
	if flow.Answer != nil {
		e.answer = flow.Spec.Writers(flow.Answer.ID)
	}
	for _, name := range flow.ClientTools() {
		e.clients[name] = true
	}
	for _, name := range clientTools {
		e.clients[name] = true
	}
	return e
}

// Skip makes the encoder leave out the first n frames: the client has them.
func (e *Encoder) Skip(n int) { e.skip = n }

// Frames returns the number of frames so far, skipped ones included.
func (e *Encoder) Frames() int { return e.n }

// MessageID returns the id of the message that the run writes.
func MessageID(run string) string { return "msg_" + run }

// RunOf returns the id of the run that has written a message; any text for other messages.
func RunOf(message string) string { return strings.TrimPrefix(message, "msg_") }

// Append appends the chunks of an event.
func (e *Encoder) Append(b []byte, ev *runs.Event) []byte {
	switch ev.Type {
	case runs.RunStarted:
		b = e.start(b)
		if len(ev.Kept) > 0 {
			b = e.object(b, "data-not-undone", field{"data", ev.Kept}, field{"transient", true})
		}
		return b
	case runs.StepStarted:
		b = e.closeParts(b)
		b = e.frame(b, `{"type":"start-step"}`)
		return e.object(b, "message-metadata", field{"messageMetadata", map[string]string{"step_id": ev.Step}})
	case runs.StepFinished:
		b = e.closeParts(b)
		return e.frame(b, `{"type":"finish-step"}`)
	case runs.TextDelta:
		return e.delta(b, ev)
	case runs.ReasoningDelta:
		return e.partDelta(b, ev, reasoningPart)
	case runs.CommentaryDelta:
		return e.partDelta(b, ev, commentaryPart)
	case runs.ToolCalled:
		return e.toolCalled(b, ev)
	case runs.ToolReturned:
		return e.toolReturned(b, ev)
	case runs.RequestOpened:
		e.waiting++
		return e.request(b, ev)
	case runs.RequestAnswered:
		e.waiting--
	case runs.SourceCited:
		if e.answer == nil || e.answer[ev.Step] {
			e.cited[ev.Row] = append(e.cited[ev.Row], ev.Source.Block())
		}
	case runs.UsageReported:
		e.usage.Input += ev.Usage.Input
		e.usage.Output += ev.Usage.Output
	case runs.RowFinished:
		return e.row(b, ev)
	case runs.RunFinished:
		return e.finish(b, ev)
	}
	return b
}

// Waiting reports whether the run waits for an answer: of the client, or of somebody with a role.
func (e *Encoder) Waiting() bool { return e.waiting > 0 }

// Ended reports whether the last chunk was written.
func (e *Encoder) Ended() bool { return e.ended }

// Start appends the chunk with which each response begins: that of a continued run has
// the same message id.
func (e *Encoder) start(b []byte) []byte {
	return e.object(b, "start", field{"messageId", MessageID(e.run)}, field{"messageMetadata", map[string]string{"run_id": e.run}})
}

// Continue appends the start of a response that continues a run after the frames of an
// earlier response.
func (e *Encoder) Continue(b []byte) []byte {
	b = append(b, "data: "...)
	b = appendObject(b, "start", field{"messageId", MessageID(e.run)})
	// What follows is a new step: clients send answers again while the last step has them.
	return append(b, "\n\ndata: {\"type\":\"start-step\"}\n\n"...)
}

// Pause appends the end of a response of a run that waits for its client.
func (e *Encoder) Pause(b []byte) []byte {
	b = append(b, "data: "...)
	b = appendObject(b, "finish", field{"finishReason", "tool-calls"}, field{"messageMetadata", map[string]string{"run_id": e.run, "status": string(runs.Waiting)}})
	return append(b, "\n\ndata: [DONE]\n\n"...)
}

// openPart is a part that has not ended. Steps and rows that run at the same time have
// separate parts.
type openPart struct {
	step string
	kind partKind
	id   string
	row  int64
}

// partKind is what a part of text has.
type partKind int

const (
	textPart       partKind = iota // the answer
	reasoningPart                  // the model's reasoning, and the text of steps that do not write the answer
	commentaryPart                 // what the model writes before its answer
)

// chunk returns the name of the part in the types of chunks. The protocol has no part for commentary.
// Clients show text parts as the answer, so it is a reasoning part.
func (k partKind) chunk() string {
	if k == textPart {
		return "text"
	}
	return "reasoning"
}

// startPart appends the start of a part. The metadata of a part with commentary names its phase.
func (e *Encoder) startPart(b []byte, p *openPart) []byte {
	fields := []field{{"id", p.id}}
	if p.kind == commentaryPart {
		fields = append(fields, field{"providerMetadata", schema.Commentary()})
	}
	return e.object(b, p.kind.chunk()+"-start", fields...)
}

// delta appends text of an answer. The text of other steps is shown as reasoning.
func (e *Encoder) delta(b []byte, ev *runs.Event) []byte {
	if e.answer != nil && !e.answer[ev.Step] {
		return e.partDelta(b, ev, reasoningPart)
	}
	e.streamed[ev.Row] = true
	return e.partDelta(b, ev, textPart)
}

// partDelta appends text to the open part of a step and row, which it opens if there is none.
func (e *Encoder) partDelta(b []byte, ev *runs.Event, kind partKind) []byte {
	for i, p := range e.open {
		if p.step != ev.Step || p.row != ev.Row {
			continue
		}
		if p.kind == kind {
			return e.deltaFrame(b, kind.chunk()+"-delta", p.id, ev.Text)
		}
		b = e.object(b, p.kind.chunk()+"-end", field{"id", p.id})
		e.open = slices.Delete(e.open, i, i+1)
		break
	}
	p := openPart{ev.Step, kind, e.newPart(map[partKind]string{textPart: "txt", reasoningPart: "rsn", commentaryPart: "com"}[kind]), ev.Row}
	e.open = append(e.open, p)
	b = e.startPart(b, &p)
	return e.deltaFrame(b, kind.chunk()+"-delta", p.id, ev.Text)
}

// newPart returns the id of a new part.
func (e *Encoder) newPart(kind string) string {
	e.parts++
	return kind + "_" + strconv.Itoa(e.parts)
}

// closeParts ends the open parts: clients forget them at the begin and the end of a step.
func (e *Encoder) closeParts(b []byte) []byte {
	for _, p := range e.open {
		b = e.object(b, p.kind.chunk()+"-end", field{"id", p.id})
	}
	e.open = e.open[:0]
	return b
}

// callID returns the id of a tool call: a step that calls a tool itself gives none.
func (e *Encoder) callID(ev *runs.Event, opens bool) string {
	return e.calls.Of(ev, opens, func() string {
		e.parts++
		return e.run + "_call_" + strconv.Itoa(e.parts)
	})
}

func (e *Encoder) toolCalled(b []byte, ev *runs.Event) []byte {
	b = e.closeParts(b)
	id := e.callID(ev, true)
	e.called[id] = true
	call := field{"toolCallId", id}
	name := field{"toolName", ev.Tool}
	input := schema.JSONOrText(ev.Text)
	by := e.executedBy(ev.Tool)
	b = e.object(b, "tool-input-start", append([]field{call, name}, by...)...)
	b = e.object(b, "tool-input-delta", call, field{"inputTextDelta", ev.Text})
	return e.object(b, "tool-input-available", append([]field{call, name, {"input", input}}, by...)...)
}

// executedBy returns the field that marks a tool that the server runs.
func (e *Encoder) executedBy(tool string) []field {
	if e.clients[tool] {
		return nil
	}
	return []field{{"providerExecuted", true}}
}

func (e *Encoder) toolReturned(b []byte, ev *runs.Event) []byte {
	id := e.callID(ev, false)
	call := field{"toolCallId", id}
	if ev.Error != "" {
		if e.toolFailed[id] {
			return b
		}
		e.toolFailed[id] = true
		if ev.Denied {
			return e.object(b, "tool-output-denied", call)
		}
		return e.object(b, "tool-output-error", append([]field{call, {"errorText", ev.Error}}, e.executedBy(ev.Tool)...)...)
	}
	return e.object(b, "tool-output-available", append([]field{call, {"output", schema.JSONOrText(ev.Text)}}, e.executedBy(ev.Tool)...)...)
}

// request appends what the run requests from its client. The call that a run of another server
// requests is not known yet.
func (e *Encoder) request(b []byte, ev *runs.Event) []byte {
	if !e.called[e.callID(ev, false)] {
		b = e.toolCalled(b, &runs.Event{Step: ev.Step, Row: ev.Row, Tool: ev.Tool, Call: ev.Call, Text: string(ev.Request.Arguments)})
	}
	if ev.Request.Kind == runs.Approval && ev.Request.AsksCaller() {
		b = e.object(b, "tool-approval-request", field{"approvalId", ev.Request.ID}, field{"toolCallId", e.callID(ev, false)})
	}
	data := struct {
		Run string `json:"run"`
		*runs.Request
	}{e.run, ev.Request}
	return e.object(b, "data-request", field{"id", ev.Request.ID}, field{"data", data}, field{"transient", true})
}

// row appends the outputs of a row, or its error. An answer that no step has streamed is
// one text.
func (e *Encoder) row(b []byte, ev *runs.Event) []byte {
	b = e.closeParts(b)
	e.spanID, e.traceID = ev.Result.SpanID, ev.Result.TraceID
	if ev.Error != "" {
		e.failed = true
		return e.object(b, "error", field{"errorText", ev.Error})
	}
	if m := e.flow.AnswerOf(ev.Result.Outputs); m != nil {
		b = e.message(b, ev.Row, m)
	} else {
		if !e.streamed[ev.Row] && e.flow.Interface() == "Complete" && len(ev.Result.Outputs) > 0 {
			b = e.whole(b, value.Text(ev.Result.Outputs[0]))
		}
		b = e.message(b, ev.Row, &chat.Message{Blocks: e.cited[ev.Row]})
	}
	return e.outputs(b, ev)
}

// outputs appends the outputs of a row. Clients replace a part by another one with its id,
// and a row may have several results.
func (e *Encoder) outputs(b []byte, ev *runs.Event) []byte {
	e.results[ev.Row]++
	if e.n++; e.n <= e.skip {
		return b
	}
	b = append(e.head(b), `{"type":"data-outputs","id":"row_`...)
	b = strconv.AppendInt(b, ev.Row, 10)
	if n := e.results[ev.Row]; n > 1 {
		b = strconv.AppendInt(append(b, '_'), int64(n), 10)
	}
	b = append(b, `","data":{"row":`...)
	b = strconv.AppendInt(b, ev.Row, 10)
	b = append(b, `,"outputs":{`...)
	b = e.flow.AppendOutputs(b, ev.Result.Outputs)
	return append(b, "}}}\n\n"...)
}

// message appends the parts of an answer that were not streamed: text, media and sources.
func (e *Encoder) message(b []byte, row int64, m *chat.Message) []byte {
	for i := range m.Blocks {
		block := &m.Blocks[i]
		switch {
		case block.Type == "citation_url", block.Type == "citation_document":
			b = e.source(b, block)
		case block.Type != "text":
			b = e.object(b, "file", field{"url", schema.DataURL(block)}, field{"mediaType", schema.MediaType(block)})
		case !e.streamed[row]:
			b = e.whole(b, block.Text)
		}
	}
	return b
}

// source appends a citation, whose block holds an object as JSON text.
func (e *Encoder) source(b []byte, block *chat.Block) []byte {
	var c struct {
		SourceID  string `json:"source_id"`
		URL       string `json:"url"`
		Title     string `json:"title"`
		MediaType string `json:"media_type"`
		Filename  string `json:"filename"`
		passage
	}
	if json.Unmarshal([]byte(block.Text), &c) != nil {
		c.URL, c.Title = block.Text, block.Text
	}
	if c.SourceID == "" {
		c.SourceID = e.newPart("src")
	}
	if block.Type == "citation_url" {
		return e.object(b, "source-url", field{"sourceId", c.SourceID}, field{"url", c.URL}, field{"title", c.Title}, c.metadata())
	}
	if c.MediaType == "" {
		c.MediaType = "text/plain"
	}
	return e.object(b, "source-document", field{"sourceId", c.SourceID}, field{"mediaType", c.MediaType}, field{"title", c.Title}, field{"filename", c.Filename}, c.metadata())
}

// passage is what a source has in addition to the fields of the protocol.
type passage struct {
	Number    int    `json:"number,omitempty"`
	Heading   string `json:"heading,omitempty"`
	Page      int    `json:"page,omitempty"`
	LineStart int    `json:"line_start,omitempty"`
	LineEnd   int    `json:"line_end,omitempty"`
	Text      string `json:"text,omitempty"`
}

// metadata returns the field for a passage, one that is left out if nothing is known.
func (p passage) metadata() field {
	if p == (passage{}) {
		return field{"providerMetadata", ""}
	}
	return field{"providerMetadata", map[string]passage{"qtype": p}}
}

// whole appends a text part that is complete.
func (e *Encoder) whole(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	id := e.newPart("txt")
	b = e.object(b, "text-start", field{"id", id})
	b = e.deltaFrame(b, "text-delta", id, text)
	return e.object(b, "text-end", field{"id", id})
}

// finish appends the last chunks. An error of the run is followed by them, too.
func (e *Encoder) finish(b []byte, ev *runs.Event) []byte {
	b = e.closeParts(b)
	reason := "stop"
	switch {
	case ev.Text == string(runs.Cancelled):
		b = e.object(b, "abort", field{"reason", ev.Error})
		reason = "other"
	case ev.Error != "":
		b = e.object(b, "error", field{"errorText", ev.Error})
		reason = "error"
	case e.failed:
		reason = "error"
	}
	metadata := struct {
		Run    string     `json:"run_id"`
		Status string     `json:"status"`
		Usage  runs.Usage `json:"usage"`
		Span   string     `json:"span_id,omitempty"`
		Trace  string     `json:"trace_id,omitempty"`
	}{e.run, ev.Text, e.usage, e.spanID, e.traceID}
	b = e.object(b, "finish", field{"finishReason", reason}, field{"messageMetadata", metadata})
	e.ended = true
	return e.frame(b, "[DONE]")
}

// field is a member of a chunk.
type field struct {
	name  string
	value any
}

// object appends a chunk as a frame.
func (e *Encoder) object(b []byte, typ string, fields ...field) []byte {
	if e.n++; e.n <= e.skip {
		return b
	}
	return append(appendObject(e.head(b), typ, fields...), "\n\n"...)
}

// frame appends a frame with a text.
func (e *Encoder) frame(b []byte, data string) []byte {
	if e.n++; e.n <= e.skip {
		return b
	}
	return append(append(e.head(b), data...), "\n\n"...)
}

// deltaFrame appends a frame with a delta.
func (e *Encoder) deltaFrame(b []byte, typ, id, delta string) []byte {
	if e.n++; e.n <= e.skip {
		return b
	}
	b = append(e.head(b), `{"type":"`...)
	b = append(append(b, typ...), `","id":"`...)
	b = append(append(b, id...), `","delta":`...)
	b = value.AppendJSON(b, delta)
	return append(b, "}\n\n"...)
}

// head appends the start of a frame with its id.
func (e *Encoder) head(b []byte) []byte {
	b = append(b, "id: "...)
	b = append(b, e.run...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(e.n), 10)
	return append(b, "\ndata: "...)
}

func appendObject(b []byte, typ string, fields ...field) []byte {
	b = append(b, `{"type":"`...)
	b = append(append(b, typ...), '"')
	for _, f := range fields {
		if s, ok := f.value.(string); ok && s == "" && f.name != "inputTextDelta" && f.name != "errorText" {
			continue
		}
		b = jsontext.AppendField(b, f.name, f.value)
	}
	return append(b, '}')
}

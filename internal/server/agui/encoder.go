package agui

import (
	"encoding/json"
	"strconv"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Encoder writes the events of a run as those of the protocol. It is an sse.Encoder, and
// not safe for concurrent use.
type Encoder struct {
	flow    *schema.Flow
	in      *Input
	run     string
	answer  map[string]bool // steps whose text is the answer; nil: all
	clients map[string]bool // names of the tools that the client runs
	have    map[string]bool // ids of the calls whose results the client has
	// Opened is called with each request and the id of its call as the client knows it, and
	// reports whether it was answered at once; may be nil.
	Opened func(req *runs.Request, call string) bool

	text, reasoning string // ids of the open messages; empty for none
	commentary      bool   // reasoning is the id of a message with commentary
	parent          string // id of the message to which tool calls belong; empty for none
	parts           int    // messages that were opened
	streamed        map[int64]bool
	steps           activeSteps
	calls           runs.CallIDs
	called          map[string]bool   // ids of the calls that were written
	names           int               // calls that were named here
	open            []*runs.Request   // requests without an answer, the oldest first
	callOf          map[string]string // ids of calls by the ids of requests
	usage           usage
	failure         *runs.Result // the row that failed
	outputs         json.RawMessage
	state           json.RawMessage
	cited           []chat.Block // sources of the answer of the row
}

// NewEncoder returns an Encoder of a run for the request in.
func NewEncoder(flow *schema.Flow, run string, in *Input) *Encoder {
	e := &Encoder{flow: flow, in: in, run: run, clients: map[string]bool{}, have: map[string]bool{}, streamed: map[int64]bool{},
		callOf: map[string]string{}, called: map[string]bool{}}
	if flow.Answer != nil {
		e.answer = flow.Spec.Writers(flow.Answer.ID)
	}
	for _, name := range flow.ClientTools() {
		e.clients[name] = true
	}
	for _, t := range in.Tools {
		e.clients[t.Name] = true
	}
	for i := range in.Messages {
		if m := &in.Messages[i]; m.Role == "tool" {
			e.have[m.ToolCallID] = true
		}
	}
	return e
}

// Replay takes in events that an earlier response has written.
func (e *Encoder) Replay(events []runs.Event) {
	opened := e.Opened
	e.Opened = nil
	for i := range events {
		_ = e.Append(nil, &events[i])
	}
	_ = e.closeMessages(nil)
	e.Opened, e.parent, e.usage = opened, "", nil
}

// Continue appends the start of a response that continues a run after replayed events.
func (e *Encoder) Continue(b []byte) []byte {
	b = e.start(b)
	for _, s := range e.steps {
		b = object(b, "STEP_STARTED", field{"stepName", s.name})
	}
	return b
}

// CallOf returns the id of the tool call of a request as the client knows it.
func (e *Encoder) CallOf(req *runs.Request) string {
	if id := e.callOf[req.ID]; id != "" {
		return id
	}
	return req.Call
}

// Append appends the events of the protocol for an event of the run.
func (e *Encoder) Append(b []byte, ev *runs.Event) []byte {
	switch ev.Type {
	case runs.RunStarted:
		b = e.start(b)
		if len(ev.Kept) > 0 {
			b = object(b, "CUSTOM", field{"name", "not_undone"}, field{"value", ev.Kept})
		}
		return b
	case runs.StepStarted:
		return e.stepStarted(b, ev.Step)
	case runs.StepFinished:
		return e.stepFinished(b, ev.Step)
	case runs.TextDelta:
		return e.delta(b, ev)
	case runs.ReasoningDelta:
		return e.reasoningDelta(b, ev.Text, false)
	case runs.CommentaryDelta:
		return e.reasoningDelta(b, ev.Text, true)
	case runs.ToolCalled:
		return e.toolCalled(b, ev)
	case runs.ToolReturned:
		return e.toolReturned(b, ev)
	case runs.RequestOpened:
		return e.requested(b, ev)
	case runs.RequestAnswered:
		e.answered(ev.Request.ID)
	case runs.SourceCited:
		if e.answer == nil || e.answer[ev.Step] {
			e.cited = append(e.cited, ev.Source.Block())
		}
	case runs.UsageReported:
		e.usage.add(ev)
	case runs.RowFinished:
		return e.row(b, ev)
	case runs.RunFinished:
		return e.finish(b, ev)
	}
	return b
}

// Waiting reports whether the run waits for its client.
func (e *Encoder) Waiting() bool { return len(e.open) > 0 }

// start appends the event with which each response begins: each request is a run of the
// protocol.
func (e *Encoder) start(b []byte) []byte {
	return object(b, "RUN_STARTED", field{"threadId", e.in.ThreadID}, field{"runId", e.in.RunID}, field{"protocolVersion", Version},
		field{"metadata", map[string]string{"run": e.run}})
}

func (e *Encoder) stepStarted(b []byte, step string) []byte {
	b = e.closeMessages(b)
	e.parent = ""
	if e.steps.enter(step) {
		b = object(b, "STEP_STARTED", field{"stepName", step})
	}
	return b
}

func (e *Encoder) stepFinished(b []byte, step string) []byte {
	b = e.closeMessages(b)
	if e.steps.leave(step) {
		b = object(b, "STEP_FINISHED", field{"stepName", step})
	}
	return b
}

// delta appends text of an answer. The text of other steps is shown as reasoning.
func (e *Encoder) delta(b []byte, ev *runs.Event) []byte {
	if e.answer != nil && !e.answer[ev.Step] {
		return e.reasoningDelta(b, ev.Text, false)
	}
	e.streamed[ev.Row] = true
	if e.reasoning != "" {
		b = e.closeMessages(b)
	}
	if e.text == "" {
		e.text = e.newMessage()
		e.parent = e.text
		b = object(b, "TEXT_MESSAGE_START", field{"messageId", e.text}, field{"role", "assistant"})
	}
	return deltaObject(b, "TEXT_MESSAGE_CONTENT", e.text, ev.Text)
}

// reasoningDelta appends reasoning, or commentary, which has separate messages. Clients send text
// messages back as answers, so commentary is not one.
func (e *Encoder) reasoningDelta(b []byte, text string, commentary bool) []byte {
	if e.text != "" || e.commentary != commentary {
		b = e.closeMessages(b)
	}
	if e.reasoning == "" {
		e.reasoning, e.commentary = e.newMessage(), commentary
		b = object(b, "REASONING_START", field{"messageId", e.reasoning})
		b = object(b, "REASONING_MESSAGE_START", field{"messageId", e.reasoning}, field{"role", "reasoning"})
	}
	return deltaObject(b, "REASONING_MESSAGE_CONTENT", e.reasoning, text)
}

// newMessage returns the id of a new message.
func (e *Encoder) newMessage() string {
	e.parts++
	return "msg_" + e.run + "_" + strconv.Itoa(e.parts)
}

// callID returns the id of the nth call that a run has named.
func callID(run, n string) string { return "call_" + run + "_" + n }

func (e *Encoder) closeMessages(b []byte) []byte {
	if e.text != "" {
		b = object(b, "TEXT_MESSAGE_END", field{"messageId", e.text})
	}
	if e.reasoning != "" {
		b = object(b, "REASONING_MESSAGE_END", field{"messageId", e.reasoning})
		b = object(b, "REASONING_END", field{"messageId", e.reasoning})
	}
	e.text, e.reasoning = "", ""
	return b
}

// callID returns the id of a tool call: a step that calls a tool itself gives none.
func (e *Encoder) callID(ev *runs.Event, opens bool) string {
	return e.calls.Of(ev, opens, func() string {
		e.names++
		return callID(e.run, strconv.Itoa(e.names))
	})
}

func (e *Encoder) toolCalled(b []byte, ev *runs.Event) []byte {
	b = e.closeMessages(b)
	id := e.callID(ev, true)
	e.called[id] = true
	call := field{"toolCallId", id}
	if e.parent == "" { // so that the message of the client names the run; see Input.run
		e.parent = e.newMessage()
	}
	b = object(b, "TOOL_CALL_START", call, field{"toolCallName", ev.Tool}, field{"parentMessageId", e.parent})
	b = object(b, "TOOL_CALL_ARGS", call, field{"delta", ev.Text})
	return object(b, "TOOL_CALL_END", call)
}

// toolReturned appends the result of a tool, unless the client has sent it.
func (e *Encoder) toolReturned(b []byte, ev *runs.Event) []byte {
	id := e.callID(ev, false)
	e.parent = ""
	if id == "" || e.clients[ev.Tool] && e.have[id] {
		return b
	}
	b = e.closeMessages(b)
	content := ev.Text
	if ev.Error != "" {
		content = "error: " + ev.Error
	}
	return object(b, "TOOL_CALL_RESULT", field{"messageId", e.newMessage()}, field{"toolCallId", id}, field{"content", content}, field{"role", "tool"})
}

// requested appends a request of the run to its client. The call that a run of another server
// requests is not known yet.
func (e *Encoder) requested(b []byte, ev *runs.Event) []byte {
	if !e.called[e.callID(ev, false)] {
		b = e.toolCalled(b, &runs.Event{Step: ev.Step, Row: ev.Row, Tool: ev.Tool, Call: ev.Call, Text: string(ev.Request.Arguments)})
	}
	id := e.callID(ev, false)
	e.callOf[ev.Request.ID] = id
	if e.Opened != nil && e.Opened(ev.Request, id) {
		return b
	}
	e.open = append(e.open, ev.Request)
	if ev.Request.Kind != runs.Approval {
		return b
	}
	return object(b, "CUSTOM", field{"name", "approval_request"}, field{"value", struct {
		Run string `json:"run"`
		*runs.Request
	}{e.run, ev.Request}})
}

// answered forgets a request.
func (e *Encoder) answered(id string) {
	for i, r := range e.open {
		if r.ID == id {
			e.open = append(e.open[:i:i], e.open[i+1:]...)
			return
		}
	}
}

// row appends the outputs of a row. An answer that no step has streamed is one message.
func (e *Encoder) row(b []byte, ev *runs.Event) []byte {
	b = e.closeMessages(b)
	if ev.Error != "" {
		e.failure = ev.Result
		return b
	}
	if m := e.flow.AnswerOf(ev.Result.Outputs); m != nil {
		b = e.message(b, ev.Row, m)
	} else {
		b = e.message(b, ev.Row, &chat.Message{Blocks: e.cited})
	}
	e.cited = nil
	e.outputs = append(e.flow.AppendOutputs([]byte{'{'}, ev.Result.Outputs), '}')
	e.state = e.newState(ev.Result.Outputs)
	return b
}

// message appends the parts of an answer that were not streamed. The messages of the
// protocol have only text: media and sources are custom events.
func (e *Encoder) message(b []byte, row int64, m *chat.Message) []byte {
	for i := range m.Blocks {
		block := &m.Blocks[i]
		switch {
		case block.Type == "citation_url", block.Type == "citation_document":
			b = object(b, "CUSTOM", field{"name", "source"}, field{"value", schema.JSONOrText(block.Text)})
		case block.Type != "text":
			b = object(b, "CUSTOM", field{"name", "file"}, field{"value", map[string]string{"url": schema.DataURL(block), "mediaType": schema.MediaType(block)}})
		case !e.streamed[row] && block.Text != "":
			id := e.newMessage()
			b = object(b, "TEXT_MESSAGE_START", field{"messageId", id}, field{"role", "assistant"})
			b = deltaObject(b, "TEXT_MESSAGE_CONTENT", id, block.Text)
			b = object(b, "TEXT_MESSAGE_END", field{"messageId", id})
		}
	}
	return b
}

// newState returns the state of the client with the outputs other than the answer, nil if
// there are none.
func (e *Encoder) newState(values []any) json.RawMessage {
	state := members(e.in.State)
	if state == nil {
		state = map[string]json.RawMessage{}
	}
	n := 0
	for i, v := range e.flow.Outputs {
		if v != e.flow.Answer && i < len(values) {
			state[v.ID] = value.JSON(values[i])
			n++
		}
	}
	if n == 0 {
		return nil
	}
	raw, _ := json.Marshal(state) // JSON values always encode
	return raw
}

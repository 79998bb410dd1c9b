// Package runs starts runs of flows for clients and keeps what they report: one stream
// of events for each run, from which every protocol of the server makes its own. A run
// that waits for its client, or that a client wants to find again, survives a restart.
package runs

import (
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// Type is what an Event reports.
type Type string

// The types of events.
const (
	RunStarted      Type = "run.started"
	StepStarted     Type = "step.started"
	StepFinished    Type = "step.finished"
	TextDelta       Type = "text.delta"
	ReasoningDelta  Type = "reasoning.delta"
	CommentaryDelta Type = "commentary.delta"
	ToolCalled      Type = "tool.called"
	ToolReturned    Type = "tool.returned"
	RequestOpened   Type = "request.opened"
	RequestAnswered Type = "request.answered"
	SourceCited     Type = "source"
	UsageReported   Type = "usage"
	RowFinished     Type = "row.finished"
	RunFinished     Type = "run.finished"
)

// types maps the events of the engine.
var types = map[steps.EventKind]Type{
	steps.EventStepStart:  StepStarted,
	steps.EventStepEnd:    StepFinished,
	steps.EventText:       TextDelta,
	steps.EventReasoning:  ReasoningDelta,
	steps.EventCommentary: CommentaryDelta,
	steps.EventToolCall:   ToolCalled,
	steps.EventToolResult: ToolReturned,
	steps.EventSource:     SourceCited,
	steps.EventUsage:      UsageReported,
}

// kinds are the events of the engine that a stream has.
var kinds = []steps.EventKind{steps.EventStepStart, steps.EventStepEnd, steps.EventText, steps.EventReasoning, steps.EventCommentary,
	steps.EventToolCall, steps.EventToolResult, steps.EventSource, steps.EventUsage}

// EventKinds returns the events of the engine that a run with Start.Events has.
func EventKinds() []steps.EventKind { return slices.Clone(kinds) }

// Event is one event of a run. Its number is its place in the stream, from 1.
type Event struct {
	Type    Type
	Time    time.Time
	Step    string           // the step's id; empty for events of the run
	Row     int64            // the row's number, 0 for none
	Text    string           // deltas: the text; tool.called: the arguments; tool.returned: the result; run.finished: the status
	Tool    string           // the tool's name
	Call    string           // the tool call's id, unique within the run
	Error   string           // why the tool, the step, the row or the run failed; empty if it did not
	Denied  bool             // tool.returned: a person did not approve the call
	Request *Request         // request.opened, request.answered
	Result  *Result          // row.finished
	Source  *citation.Source // source
	Usage   *Usage           // usage
	Kept    []runtime.Effect // run.started: calls of tools in turns that were undone for the run, which are not undone
}

// opens returns by how much the event changes the number of open requests.
func (e *Event) opens() int {
	switch e.Type {
	case RequestOpened:
		return 1
	case RequestAnswered:
		return -1
	}
	return 0
}

// Usage are the tokens of one call of a model.
type Usage struct {
	Model  string `json:"model,omitempty"` // id of the model if it is not the step's own
	Input  int    `json:"input"`
	Output int    `json:"output"`

	Finish    string  `json:"finish_reason,omitempty"` // why the model ended its answer; empty if it is not known
	Estimated bool    `json:"estimated,omitempty"`     // whether Input and Output are estimates, because the server of the model reports none
	Cached    int     `json:"cached,omitempty"`        // tokens of the input from the provider's prompt cache
	Cost      float64 `json:"cost,omitempty"`          // by the prices of the model
}

// Result is one row that came out of the flow.
type Result struct {
	Row       int64  `json:"row"`
	Outputs   []any  `json:"-"`                  // in the order of the flow's outputs; nil if the row failed
	Step      string `json:"step,omitempty"`     // the step that failed
	Error     string `json:"error,omitempty"`    // why the row failed
	Code      string `json:"code,omitempty"`     // the kind of failure; see runtime.ErrorCode
	SpanID    string `json:"span_id,omitempty"`  // of the row, for feedback
	TraceID   string `json:"trace_id,omitempty"` // of the run
	exception error
}

// Err returns the error of a failed row; of a run of another process only a
// *memory.BusyError or *memory.InterruptedError.
func (r *Result) Err() error { return r.exception }

// blockEvents is the number of events that are allocated at once. A run that waits for
// its model has one block; the events of a long answer are never copied.
const blockEvents = 8

// eventLog has the events of a run in the order in which they happened. Those that it has
// returned stay as they are. It is not safe for concurrent use.
type eventLog struct {
	blocks [][]Event // all full, except the last one
	n      int
}

// add appends an event.
func (l *eventLog) add(ev Event) {
	if l.n%blockEvents == 0 {
		l.blocks = append(l.blocks, make([]Event, 0, blockEvents))
	}
	last := &l.blocks[len(l.blocks)-1]
	*last = append(*last, ev)
	l.n++
}

// after returns events after the first n: at least one if there are any.
func (l *eventLog) after(n int) []Event {
	if n >= l.n {
		return nil
	}
	block := l.blocks[n/blockEvents]
	return block[n%blockEvents : len(block) : len(block)]
}

// first returns the first n events.
func (l *eventLog) first(n int) []Event {
	out := make([]Event, 0, min(n, l.n))
	for len(out) < cap(out) {
		next := l.after(len(out))
		out = append(out, next[:min(len(next), cap(out)-len(out))]...)
	}
	return out
}

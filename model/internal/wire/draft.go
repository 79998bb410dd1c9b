package wire

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ResponseBuilder collects the message of an answer. The zero value is ready to use.
type ResponseBuilder struct {
	id    string // id of the message, once it is needed
	text  strings.Builder
	calls []chat.ToolCall
}

// AppendText adds text and returns the deltas for it and for reasoning, which messages do
// not contain.
func (d *ResponseBuilder) AppendText(text, reasoning string) ([]model.Event, error) {
	if d.text.Len()+len(text) > MaxAnswer {
		return nil, ErrTooLong
	}
	d.text.WriteString(text)
	var events []model.Event
	if reasoning != "" {
		events = append(events, model.Event{Reasoning: reasoning})
	}
	if text != "" {
		events = append(events, model.Event{Text: text})
	}
	return events, nil
}

// Call adds a complete tool call and returns its id. It assigns one if the server does
// not, because the result of a tool must name its call.
func (d *ResponseBuilder) Call(id, name, arguments string) string {
	if arguments == "" || arguments == "null" { // of a tool without arguments
		arguments = "{}"
	}
	d.id = cmp.Or(d.id, chat.NewID())
	id = cmp.Or(id, fmt.Sprintf("call_%s%d", d.id[len(d.id)/2:], len(d.calls)))
	d.calls = append(d.calls, chat.ToolCall{ID: id, Name: name, Arguments: arguments})
	return id
}

// Calls returns the number of calls.
func (d *ResponseBuilder) Calls() int { return len(d.calls) }

// Message returns the message. Without calls it has a text, which may be empty.
func (d *ResponseBuilder) Message() chat.Message {
	m := chat.Message{ID: cmp.Or(d.id, chat.NewID()), Role: chat.Assistant, ToolCalls: d.calls}
	if d.text.Len() > 0 || len(d.calls) == 0 {
		m.Blocks = []chat.Block{{Type: "text", Text: d.text.String()}}
	}
	return m
}

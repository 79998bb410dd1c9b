package wire

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ResponseBuilder is the message of an answer while it grows. The zero value is an empty one.
type ResponseBuilder struct {
	id    string // the message's, once it is needed
	text  strings.Builder
	calls []chat.ToolCall
}

// AppendText adds to the text, and answers what that and a model's thoughts, which no
// message keeps, tell the reader.
func (d *ResponseBuilder) AppendText(text, thoughts string) ([]model.Event, error) {
	if d.text.Len()+len(text) > MaxAnswer {
		return nil, ErrTooLong
	}
	d.text.WriteString(text)
	var events []model.Event
	if thoughts != "" {
		events = append(events, model.Event{Reasoning: thoughts})
	}
	if text != "" {
		events = append(events, model.Event{Text: text})
	}
	return events, nil
}

// Call adds a tool call that is whole, and answers its id: one of ours where
// the server gives none, for the tool's result must name its call.
func (d *ResponseBuilder) Call(id, name, arguments string) string {
	if arguments == "" || arguments == "null" { // of a tool that takes none
		arguments = "{}"
	}
	d.id = cmp.Or(d.id, chat.NewID())
	id = cmp.Or(id, fmt.Sprintf("call_%s%d", d.id[:16], len(d.calls)))
	d.calls = append(d.calls, chat.ToolCall{ID: id, Name: name, Arguments: arguments})
	return id
}

// Calls is how many calls were added.
func (d *ResponseBuilder) Calls() int { return len(d.calls) }

// Message is the message, complete. Without calls it has a text, be it an empty one.
func (d *ResponseBuilder) Message() chat.Message {
	m := chat.Message{ID: cmp.Or(d.id, chat.NewID()), Role: chat.Assistant, ToolCalls: d.calls}
	if d.text.Len() > 0 || len(d.calls) == 0 {
		m.Blocks = []chat.Block{{Type: "text", Text: d.text.String()}}
	}
	return m
}

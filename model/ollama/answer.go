package ollama

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// line is an answer, or one line of a streamed one.
type line struct {
	Message *struct {
		Content   string    `json:"content"`
		Thinking  string    `json:"thinking"`
		ToolCalls []request `json:"tool_calls"`
	} `json:"message"`
	Done   bool            `json:"done"`
	Reason string          `json:"done_reason"` // stop, length, load, unload
	Input  int             `json:"prompt_eval_count"`
	Output int             `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

// assembler puts an answer together.
type assembler struct {
	text  strings.Builder
	calls []chat.ToolCall
	last  line // the closing one
}

// whole takes an answer that came in one piece.
func (a *assembler) whole(raw []byte) error {
	if _, err := a.Chunk(raw); err != nil {
		return err
	}
	if !a.last.Done {
		return errors.New("it is not done")
	}
	return nil
}

// Complete tells whether the closing line came.
func (a *assembler) Complete(bool) bool { return a.last.Done }

// Chunk takes one line and answers what it says to a reader.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadFault(l.Error); ok {
		return nil, &wire.StreamFault{Fault: f}
	}
	if l.Done {
		a.last = l
	}
	m := l.Message
	if m == nil {
		if !l.Done {
			return nil, errors.New("it holds no message")
		}
		return nil, nil
	}
	if a.text.Len()+len(m.Content) > wire.MaxAnswer {
		return nil, wire.ErrTooLong
	}
	a.text.WriteString(m.Content)
	for _, c := range m.ToolCalls { // each comes whole
		arguments := string(c.Function.Arguments)
		if arguments == "null" {
			arguments = ""
		}
		a.calls = append(a.calls, chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: cmp.Or(arguments, "{}")})
	}
	var events []model.Event
	if m.Thinking != "" {
		events = append(events, model.Event{Reasoning: m.Thinking})
	}
	if m.Content != "" {
		events = append(events, model.Event{Text: m.Content})
	}
	return events, nil
}

// response is the answer, complete.
func (a *assembler) response() *model.Response {
	m := chat.Message{ID: chat.NewID(), Role: chat.Assistant, ToolCalls: a.calls}
	if a.text.Len() > 0 || len(a.calls) == 0 {
		m.Blocks = []chat.Block{{Type: "text", Text: a.text.String()}}
	}
	for i := range m.ToolCalls { // older versions give no ids, but a result must name its call
		m.ToolCalls[i].ID = cmp.Or(m.ToolCalls[i].ID, fmt.Sprintf("call_%s%d", m.ID[:16], i))
	}
	finish := "stop"
	switch {
	case a.last.Reason == "length":
		finish = "length"
	case len(a.calls) > 0:
		finish = "tool_calls"
	}
	return &model.Response{Message: m, Finish: finish, Usage: model.Usage{Input: a.last.Input, Output: a.last.Output}}
}

package ollama

import (
	"encoding/json"
	"errors"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
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
	Input  wire.Count      `json:"prompt_eval_count"`
	Output wire.Count      `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

// assembler builds a response from its parts.
type assembler struct {
	draft    wire.ResponseBuilder
	think    wire.ThinkSplitter
	thinking bool // whether the last block is thinking that goes back
	last     line // the closing line
}

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	if _, err := a.Chunk(raw); err != nil {
		return err
	}
	if !a.last.Done {
		return errors.New("not done")
	}
	return nil
}

// Complete reports whether the closing line was read.
func (a *assembler) Complete(bool) bool { return a.last.Done }

// Chunk reads one line and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(l.Error); ok {
		return nil, &wire.StreamError{API: f}
	}
	if l.Done {
		a.last = l
	}
	m := l.Message
	if m == nil {
		if !l.Done {
			return nil, errors.New("no message")
		}
		return nil, nil
	}
	events, err := a.add(m.Content, m.Thinking, l.Done)
	if err != nil {
		return nil, err
	}
	for _, c := range m.ToolCalls { // each comes in one part
		if err := a.endThinking(); err != nil {
			return nil, err
		}
		a.draft.Call(c.ID, c.Function.Name, string(c.Function.Arguments))
	}
	return events, nil
}

// add adds text and thinking, and returns the deltas for them. Some models have their thinking in
// the text, which does not go back.
func (a *assembler) add(content, thinking string, last bool) ([]model.Event, error) {
	text, thought := a.think.Add(content)
	if last {
		rest, more := a.think.End()
		text, thought = text+rest, thought+more
	}
	events, err := a.draft.AppendText("", thinking+thought)
	if err != nil {
		return nil, err
	}
	a.thinking = thinking != "" || a.thinking && thought == ""
	if text == "" {
		return events, nil
	}
	if err := a.endThinking(); err != nil {
		return nil, err
	}
	more, err := a.draft.AppendText(text, "")
	return append(events, more...), err
}

// endThinking marks the last block as thinking that goes back.
func (a *assembler) endThinking() error {
	ends := a.thinking
	if a.thinking = false; !ends {
		return nil
	}
	return a.draft.Attach(chat.ReasoningType, chat.Item{Field: thinkingField})
}

// thinkingField is the field of a message with reasoning.
const thinkingField = "thinking"

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	if err := a.endThinking(); err != nil {
		return nil, err
	}
	resp := &model.Response{Message: a.draft.Message(), Usage: model.Usage{Input: int(a.last.Input), Output: int(a.last.Output)}}
	resp.Finish, resp.Reason = wire.Finish(a.last.Reason, a.draft.Calls())
	return resp, nil
}

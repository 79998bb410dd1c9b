package ollama

import (
	"encoding/json"
	"errors"

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
	Input  wire.Count      `json:"prompt_eval_count"`
	Output wire.Count      `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

// assembler builds a response from its parts.
type assembler struct {
	draft wire.ResponseBuilder
	think wire.ThinkSplitter
	last  line // the closing line
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
	for _, c := range m.ToolCalls { // each comes in one part
		a.draft.Call(c.ID, c.Function.Name, string(c.Function.Arguments))
	}
	text, thought := a.think.Add(m.Content)
	if l.Done {
		rest, more := a.think.End()
		text, thought = text+rest, thought+more
	}
	return a.draft.AppendText(text, m.Thinking+thought)
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	resp := &model.Response{Message: a.draft.Message(), Usage: model.Usage{Input: int(a.last.Input), Output: int(a.last.Output)}}
	resp.Finish, resp.Reason = wire.Finish(a.last.Reason, a.draft.Calls())
	return resp, nil
}

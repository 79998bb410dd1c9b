package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// message is a complete answer.
type message struct {
	Type       string          `json:"type"`
	Content    []block         `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      usage           `json:"usage"`
	Error      json.RawMessage `json:"error"`
}

// block is a part of an answer.
type block struct {
	Type     string          `json:"type"` // text, thinking, redacted_thinking, tool_use, or a type of a server tool
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
}

// usage counts tokens. Input excludes tokens read from and written to the prompt cache.
type usage struct {
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Cached  wire.Count `json:"cache_read_input_tokens"`
	Created wire.Count `json:"cache_creation_input_tokens"`
}

// event is one event of a stream.
type event struct {
	Type    string          `json:"type"`
	Index   wire.Count      `json:"index"`         // of the block, for content_block_…
	Message *message        `json:"message"`       // for message_start
	Block   *block          `json:"content_block"` // for content_block_start
	Usage   *usage          `json:"usage"`         // for message_delta: totals so far
	Error   json.RawMessage `json:"error"`
	Delta   struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Arguments  string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
}

// call is a partial tool call.
type call struct {
	id, name  string
	whole     json.RawMessage // the input, if it came in one part
	arguments strings.Builder // or in several parts
}

// assembler builds a response from its parts.
type assembler struct {
	draft  wire.ResponseBuilder
	calls  []*call       // the calls so far
	blocks map[int]*call // of a stream, by the index of their block
	stop   string
	usage  usage
	done   bool
}

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(m.Error); ok {
		return &wire.StreamError{API: f}
	}
	if m.Type != "message" {
		return errors.New(`its type is not "message"`)
	}
	for _, b := range m.Content {
		a.begin(b)
		if _, err := a.draft.AppendText(b.Text, ""); err != nil {
			return err
		}
	}
	a.stop, a.usage = m.StopReason, m.Usage
	return nil
}

// Complete reports whether the closing event was read.
func (a *assembler) Complete(bool) bool { return a.done }

// Chunk reads one event of a stream and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	var ev event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(ev.Error); ok {
		return nil, &wire.StreamError{API: f}
	}
	switch ev.Type {
	case "message_start":
		if ev.Message != nil {
			a.usage = ev.Message.Usage
		}
	case "content_block_start":
		if ev.Block != nil {
			if a.blocks == nil {
				a.blocks = map[int]*call{}
			}
			a.blocks[int(ev.Index)] = a.begin(*ev.Block)
			return a.draft.AppendText(ev.Block.Text, ev.Block.Thinking)
		}
	case "content_block_delta":
		if c := a.blocks[int(ev.Index)]; c != nil && ev.Delta.Arguments != "" {
			if c.arguments.Len()+len(ev.Delta.Arguments) > wire.MaxAnswer {
				return nil, wire.ErrTooLong
			}
			c.arguments.WriteString(ev.Delta.Arguments)
		}
		return a.draft.AppendText(ev.Delta.Text, ev.Delta.Thinking)
	case "message_delta":
		a.stop = cmp.Or(ev.Delta.StopReason, a.stop)
		a.sum(ev.Usage)
	case "message_stop":
		a.done = true
	}
	return nil, nil
}

// sum updates the counts; those that an event omits do not change.
func (a *assembler) sum(u *usage) {
	if u == nil {
		return
	}
	a.usage = usage{Input: cmp.Or(u.Input, a.usage.Input), Output: cmp.Or(u.Output, a.usage.Output),
		Cached: cmp.Or(u.Cached, a.usage.Cached), Created: cmp.Or(u.Created, a.usage.Created)}
}

// begin begins a block; it returns the call if the block is one.
func (a *assembler) begin(b block) *call {
	if b.Type != "tool_use" {
		return nil
	}
	c := &call{id: b.ID, name: b.Name, whole: b.Input}
	a.calls = append(a.calls, c)
	return c
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	for _, c := range a.calls {
		a.draft.Call(c.id, c.name, cmp.Or(c.arguments.String(), string(c.whole)))
	}
	u := model.Usage{Input: int(a.usage.Input + a.usage.Cached + a.usage.Created), Output: int(a.usage.Output), Cached: int(a.usage.Cached), CacheWrite: int(a.usage.Created)}
	resp := &model.Response{Message: a.draft.Message(), Usage: u}
	resp.Finish, resp.Reason = wire.Finish(a.stop, len(a.calls))
	return resp, nil
}

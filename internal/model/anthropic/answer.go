package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The reasons for which the provider ends an answer that this client reads itself.
const (
	stopPause      = "pause_turn" // the provider continues when it gets the answer back
	stopCompaction = "compaction" // so it does after a summary of the conversation
	stopRefusal    = "refusal"
	finishPause    = "pause" // in a Response: the answer goes on
)

// message is a complete answer.
type message struct {
	Type       string            `json:"type"`
	Content    []json.RawMessage `json:"content"`
	StopReason wire.Word         `json:"stop_reason"`
	Details    stopDetails       `json:"stop_details"`
	Usage      wire.Loose[usage] `json:"usage"`
	Changes    []change          `json:"input_transformations"`
	Error      json.RawMessage   `json:"error"`
}

// stopDetails is why the provider refused to answer.
type stopDetails struct {
	Category wire.Word `json:"category"` // such as cyber; empty if it names none
}

// change is a block of the request that the provider left out.
type change struct {
	Type   string `json:"type"` // thinking_dropped, thinking_mismatch_allowed
	Path   string `json:"path"` // of the block in the request
	Reason string `json:"reason"`
}

// event is one event of a stream.
type event struct {
	Type    string            `json:"type"`
	Index   wire.Count        `json:"index"`         // of the block, for content_block_…
	Message *message          `json:"message"`       // for message_start
	Block   json.RawMessage   `json:"content_block"` // for content_block_start
	Usage   wire.Loose[usage] `json:"usage"`         // for message_delta: totals so far
	Changes []change          `json:"input_transformations"`
	Error   json.RawMessage   `json:"error"`
	Delta   json.RawMessage   `json:"delta"`
}

// ending is the delta of message_delta.
type ending struct {
	StopReason wire.Word   `json:"stop_reason"`
	Details    stopDetails `json:"stop_details"`
}

// assembler builds a response from its parts.
type assembler struct {
	blocks  []*block           // in the order in which they began
	open    map[wire.Count]int // of a stream: positions of blocks, by their index there
	size    int                // bytes of all blocks
	stop    string
	details stopDetails
	usage   usage
	changes []change
	done    bool
	spoken  bool // whether there is text, here or in the answer that this one continues
	apart   bool // whether blocks of other types came after that text
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
	for _, raw := range m.Content {
		if _, err := a.begin(raw); err != nil {
			return err
		}
	}
	a.stop, a.details, a.usage, a.changes = string(m.StopReason), m.Details, m.Usage.Value, m.Changes
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
	if len(ev.Changes) > 0 {
		a.changes = ev.Changes
	}
	switch ev.Type {
	case "message_start":
		if ev.Message != nil {
			a.usage, a.changes = ev.Message.Usage.Value, ev.Message.Changes
		}
	case "content_block_start":
		return a.start(ev)
	case "content_block_delta":
		return a.extend(ev)
	case "message_delta":
		var end ending
		if len(ev.Delta) > 0 {
			if err := json.Unmarshal(ev.Delta, &end); err != nil {
				return nil, wire.Shape(err)
			}
		}
		a.stop = cmp.Or(string(end.StopReason), a.stop)
		a.details.Category = cmp.Or(end.Details.Category, a.details.Category)
		if ev.Usage.Set {
			a.usage.update(ev.Usage.Value)
		}
	case "message_stop":
		a.done = true
	}
	return nil, nil
}

// start begins a block of a stream.
func (a *assembler) start(ev event) ([]model.Event, error) {
	if len(ev.Block) == 0 || string(ev.Block) == "null" {
		return nil, nil
	}
	b, err := a.begin(slices.Clone(ev.Block))
	if err != nil {
		return nil, err
	}
	if a.open == nil {
		a.open = map[wire.Count]int{}
	}
	a.open[ev.Index] = len(a.blocks) - 1
	var reasoning string
	if b.kind == thinkingType {
		reasoning = b.members.text(thinkingType)
	}
	if b.kind != textType {
		return a.deltas("", reasoning), nil
	}
	return a.deltas(b.members.text(textType), ""), nil
}

// extend adds a delta to a block of a stream. A server may leave out the begin of a block.
func (a *assembler) extend(ev event) ([]model.Event, error) {
	if len(ev.Delta) == 0 || string(ev.Delta) == "null" {
		return nil, nil
	}
	i, ok := a.open[ev.Index]
	if !ok {
		delta, err := parseObject(ev.Delta)
		if err != nil {
			return nil, err
		}
		begin := object{{"type", quote(textType)}, {textType, quote("")}}
		if delta.text("type") == "thinking_delta" {
			begin = object{{"type", quote(thinkingType)}, {thinkingType, quote("")}}
		}
		if _, err := a.start(event{Index: ev.Index, Block: begin.json()}); err != nil {
			return nil, err
		}
		i = a.open[ev.Index]
	}
	if err := a.grow(len(ev.Delta)); err != nil {
		return nil, err
	}
	text, reasoning, err := a.blocks[i].add(ev.Delta)
	return a.deltas(text, reasoning), err
}

// begin adds a block.
func (a *assembler) begin(raw json.RawMessage) (*block, error) {
	if err := a.grow(len(raw)); err != nil {
		return nil, err
	}
	b, err := parseBlock(raw)
	if err == nil {
		a.blocks = append(a.blocks, b)
		a.apart = a.apart || b.kind != textType
	}
	return b, err
}

// grow counts the bytes of an answer.
func (a *assembler) grow(n int) error {
	if a.size += n; a.size > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	return nil
}

// deltas returns the events for a text and for reasoning. Together they are the text of the message.
func (a *assembler) deltas(text, reasoning string) []model.Event {
	switch {
	case text != "":
		if a.spoken && a.apart {
			text = chat.TextSeparator + text
		}
		a.spoken, a.apart = true, false
		return []model.Event{{Text: text}}
	case reasoning != "":
		return []model.Event{{Reasoning: reasoning}}
	}
	return nil
}

// follow prepares the assembler for the continuation of an answer.
func (a *assembler) follow(answer chat.Message) {
	for _, b := range answer.Blocks {
		switch {
		case b.IsCitation(), b.Type == textType && b.Text == "":
		case b.Type == textType:
			a.spoken, a.apart = true, false
		default:
			a.apart = true
		}
	}
}

// Response returns the complete answer. The provider wants the parts of an answer that it refuses
// to complete to be discarded.
func (a *assembler) Response() (*model.Response, error) {
	resp := &model.Response{Usage: a.usage.total()}
	if a.stop == stopRefusal {
		a.blocks = nil
	}
	var built builder
	if err := built.add(a.blocks); err != nil {
		return nil, err
	}
	resp.Message = built.draft.Message()
	resp.Finish, resp.Reason = wire.Finish(a.stop, built.draft.Calls())
	switch a.stop {
	case stopPause, stopCompaction:
		resp.Finish = finishPause
	case stopRefusal:
		if a.details.Category != "" {
			resp.Reason = stopRefusal + ": " + string(a.details.Category)
		}
	}
	for _, c := range a.changes {
		resp.Dropped = append(resp.Dropped, fmt.Sprintf("%s at %s: %s", c.Type, c.Path, c.Reason))
	}
	return resp, nil
}

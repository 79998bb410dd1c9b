package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/catalogue"
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

// usage counts tokens.
type usage struct {
	counts
	Tier   wire.Word `json:"service_tier"`
	Speed  wire.Word `json:"speed"`
	Region wire.Word `json:"inference_geo"`
	Hosted struct {
		Searches wire.Count `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Iterations []struct {
		Type wire.Word `json:"type"`
		counts
	} `json:"iterations"` // of an answer that took several
}

// counts are the tokens of an answer or of an iteration. Input excludes tokens read from and
// written to the prompt cache.
type counts struct {
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Cached  wire.Count `json:"cache_read_input_tokens"`
	Created wire.Count `json:"cache_creation_input_tokens"`
	Writes  struct {
		Minutes wire.Count `json:"ephemeral_5m_input_tokens"`
		Hour    wire.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update replaces the counts; those that a part of a stream omits do not change.
func (u *usage) update(by usage) {
	by.Input, by.Output = cmp.Or(by.Input, u.Input), cmp.Or(by.Output, u.Output)
	by.Cached, by.Created = cmp.Or(by.Cached, u.Cached), cmp.Or(by.Created, u.Created)
	by.Writes, by.Details = cmp.Or(by.Writes, u.Writes), cmp.Or(by.Details, u.Details)
	by.Tier, by.Speed, by.Hosted = cmp.Or(by.Tier, u.Tier), cmp.Or(by.Speed, u.Speed), cmp.Or(by.Hosted, u.Hosted)
	by.Region = cmp.Or(by.Region, u.Region)
	if by.Iterations == nil {
		by.Iterations = u.Iterations
	}
	*u = by
}

// total returns the tokens of the answer. The counts include all iterations but summaries of the
// conversation.
func (u *usage) total() model.Usage {
	sum := u.used(&u.counts)
	sum.Queries = int(u.Hosted.Searches)
	for _, i := range u.Iterations {
		if i.Type == stopCompaction {
			sum.Join(u.used(&i.counts))
		}
	}
	return sum
}

// used returns the tokens of the answer or of one of its iterations, with the tier and the region of the answer.
func (u *usage) used(c *counts) model.Usage {
	used := model.Usage{Input: int(c.Input + c.Cached + c.Created), Output: int(c.Output), Cached: int(c.Cached), CacheWrite: int(c.Created),
		CacheWrites: catalogue.CacheWrites{Minutes5: int(c.Writes.Minutes), Hour1: int(c.Writes.Hour)}, Reasoning: int(c.Details.Thinking)}
	switch {
	case u.Speed == "fast":
		used.Tier = catalogue.TierFast
	case u.Tier != "standard":
		used.Tier = string(u.Tier)
	}
	if u.Region == catalogue.InUS {
		used.Region = catalogue.InUS
	}
	return used
}

// builder builds the message of complete blocks.
type builder struct {
	draft     wire.ResponseBuilder
	segments  []object          // of the text that is the last block of the draft
	citations []json.RawMessage // of all texts
}

// add adds the blocks of an answer, and what they cite at its end.
func (b *builder) add(blocks []*block) error {
	for i, next := range blocks {
		members, raw := next.complete()
		var err error
		switch next.kind {
		case textType:
			err = b.addText(members, i+1 == len(blocks) || blocks[i+1].kind != textType)
		case thinkingType:
			if _, err = b.draft.AppendText("", members.text(thinkingType)); err == nil {
				err = b.draft.Attach(chat.ReasoningType, chat.Item{Field: thinkingType, JSON: string(raw)})
			}
		case redactedType:
			err = b.draft.AppendItem(chat.ReasoningType, "", chat.Item{Field: redactedType, JSON: string(raw)})
		case toolUseType:
			b.draft.Call(members.text("id"), members.text("name"), next.arguments())
			if attributes := members.without("type", "id", "name", "input"); len(attributes) > 0 {
				err = b.draft.Attach(chat.CallType, chat.Item{Field: toolUseType, JSON: string(attributes.json())})
			}
		default:
			err = b.draft.AppendItem(chat.ItemType, "", chat.Item{Field: next.kind, JSON: string(raw)})
		}
		if err != nil {
			return err
		}
	}
	for _, c := range citationBlocks(b.citations) {
		if err := b.draft.AppendItem(c.Type, c.Text, *c.Item); err != nil {
			return err
		}
	}
	return nil
}

// addText adds a text block. The last one of a sequence completes the text of the message.
func (b *builder) addText(members object, last bool) error {
	text := members.text(textType)
	if _, err := b.draft.AppendText(text, ""); err != nil {
		return err
	}
	if text != "" {
		b.segments = append(b.segments, segment(members))
	}
	var cited []json.RawMessage
	_ = json.Unmarshal(members.get("citations"), &cited) // none unless it is a list
	b.citations = append(b.citations, cited...)
	if !last {
		return nil
	}
	item, ok := segmentsItem(b.segments)
	b.segments = nil
	if !ok {
		return nil
	}
	return b.draft.Attach(textType, item)
}

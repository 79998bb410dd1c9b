package bedrock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// reply is an answer.
type reply struct {
	Output struct {
		Message *turn `json:"message"`
	} `json:"output"`
	Stop  string `json:"stopReason"`
	Usage usage  `json:"usage"`
}

// usage counts tokens. Input excludes tokens read from and written to the prompt cache.
type usage struct {
	Input   wire.Count `json:"inputTokens"`
	Output  wire.Count `json:"outputTokens"`
	Cached  wire.Count `json:"cacheReadInputTokens"`
	Written wire.Count `json:"cacheWriteInputTokens"`
}

// event is one event of a stream; one of its fields is set.
type event struct {
	Start *struct {
		Index wire.Count `json:"contentBlockIndex"`
		Start struct {
			Use   *toolUse `json:"toolUse"`
			Image *media   `json:"image"`
		} `json:"start"`
	} `json:"contentBlockStart"`
	Delta *struct {
		Index wire.Count `json:"contentBlockIndex"`
		Delta delta      `json:"delta"`
	} `json:"contentBlockDelta"`
	Stop *struct {
		Reason string `json:"stopReason"`
	} `json:"messageStop"`
	Metadata *struct {
		Usage usage `json:"usage"`
	} `json:"metadata"`
}

// delta is a part of a content block.
type delta struct {
	Text string `json:"text"`
	Use  *struct {
		Input string `json:"input"`
	} `json:"toolUse"`
	Reasoning *struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
		Redacted  string `json:"redactedContent"`
	} `json:"reasoningContent"`
	Image *struct {
		Source source `json:"source"`
	} `json:"image"`
}

// call is a partial tool call, image or thought of a stream.
type call struct {
	use                       *toolUse
	image                     *media
	input, thought, signature strings.Builder
	redacted                  string
}

// assembler builds a response from its parts.
type assembler struct {
	protocol *protocol
	draft    wire.ResponseBuilder
	schema   bool    // whether the call of a tool is the answer
	thoughts []block // signed thoughts that were not assigned to a call yet
	blocks   map[int]*call
	stop     string
	usage    usage
	done     bool
}

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return wire.Shape(err)
	}
	if r.Output.Message == nil {
		return errors.New("no output message")
	}
	for _, b := range r.Output.Message.Content {
		switch {
		case b.Use != nil:
			a.call(b.Use, string(b.Use.Input))
		case len(b.Reasoning) > 0:
			a.thoughts = append(a.thoughts, b)
		case b.Image != nil:
			if err := a.draft.AppendMedia("image/"+b.Image.Format, b.Image.Source.Bytes); err != nil {
				return err
			}
		case b.Text != nil:
			if _, err := a.draft.AppendText(*b.Text, ""); err != nil {
				return err
			}
		}
	}
	a.stop, a.usage = r.Stop, r.Usage
	return nil
}

// Complete reports whether the closing event was read, or at the end the reason for which
// the answer ended.
func (a *assembler) Complete(atEnd bool) bool { return a.done || atEnd && a.stop != "" }

// Chunk reads one event of a stream and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	if err := streamError(raw); err != nil {
		return nil, err
	}
	var ev event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, wire.Shape(err)
	}
	switch {
	case ev.Start != nil:
		if use := ev.Start.Start.Use; use != nil {
			a.at(int(ev.Start.Index)).use = use
		}
		a.at(int(ev.Start.Index)).image = ev.Start.Start.Image
	case ev.Delta != nil:
		return a.delta(a.at(int(ev.Delta.Index)), ev.Delta.Delta)
	case ev.Stop != nil:
		a.stop = cmp.Or(ev.Stop.Reason, "end_turn")
	case ev.Metadata != nil:
		a.usage, a.done = ev.Metadata.Usage, a.stop != ""
	}
	return nil, nil
}

// at returns the block with an index.
func (a *assembler) at(index int) *call {
	if a.blocks == nil {
		a.blocks = map[int]*call{}
	}
	if a.blocks[index] == nil {
		a.blocks[index] = &call{}
	}
	return a.blocks[index]
}

// delta adds a part of a block.
func (a *assembler) delta(c *call, d delta) ([]model.Event, error) {
	if d.Use != nil {
		if c.input.Len()+len(d.Use.Input) > wire.MaxAnswer {
			return nil, wire.ErrTooLong
		}
		c.input.WriteString(d.Use.Input)
		if a.schema && d.Use.Input != "" {
			return []model.Event{{Text: d.Use.Input}}, nil
		}
		return nil, nil
	}
	if d.Image != nil {
		return nil, c.addImage(d.Image.Source.Bytes)
	}
	thought := ""
	if r := d.Reasoning; r != nil {
		thought = r.Text
		if c.thought.Len()+len(thought) > wire.MaxAnswer {
			return nil, wire.ErrTooLong
		}
		c.thought.WriteString(r.Text)
		c.signature.WriteString(r.Signature)
		c.redacted = cmp.Or(r.Redacted, c.redacted)
	}
	return a.draft.AppendText(d.Text, thought)
}

// addImage adds a part of an image.
func (c *call) addImage(data []byte) error {
	if c.image == nil {
		c.image = &media{}
	}
	if len(c.image.Source.Bytes)+len(data) > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	c.image.Source.Bytes = append(c.image.Source.Bytes, data...)
	return nil
}

// call adds a complete call, with the thoughts before it.
func (a *assembler) call(use *toolUse, input string) {
	if a.schema {
		_, _ = a.draft.AppendText(input, "") // its length was checked
		return
	}
	id := a.draft.Call(use.ID, use.Name, input)
	if len(a.thoughts) > 0 {
		a.protocol.thoughts.Put(id, a.thoughts)
		a.thoughts = nil
	}
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	indexes := make([]int, 0, len(a.blocks))
	for i := range a.blocks {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	for _, i := range indexes {
		switch c := a.blocks[i]; {
		case c.use != nil:
			a.call(c.use, c.input.String())
		case c.image != nil:
			kind := ""
			if c.image.Format != "" {
				kind = "image/" + c.image.Format
			}
			if err := a.draft.AppendMedia(kind, c.image.Source.Bytes); err != nil {
				return nil, err
			}
		case c.signature.Len() > 0 || c.redacted != "":
			a.thoughts = append(a.thoughts, c.signedThought())
		}
	}
	u := model.Usage{Input: int(a.usage.Input + a.usage.Cached + a.usage.Written), Output: int(a.usage.Output), Cached: int(a.usage.Cached), CacheWrite: int(a.usage.Written)}
	resp := &model.Response{Message: a.draft.Message(), Usage: u}
	resp.Finish, resp.Reason = wire.Finish(a.stop, a.draft.Calls())
	return resp, nil
}

// signedThought returns a thought as it must be sent back.
func (c *call) signedThought() block {
	content := map[string]any{"reasoningText": map[string]string{"text": c.thought.String(), "signature": c.signature.String()}}
	if c.redacted != "" {
		content = map[string]any{"redactedContent": c.redacted}
	}
	raw, _ := json.Marshal(content) // texts always encode
	return block{Reasoning: raw}
}

// streamError returns the error that an event of a stream reports, nil for none.
func streamError(raw []byte) error {
	var ev map[string]struct {
		Message string `json:"message"`
		Upper   string `json:"Message"`
		Status  int    `json:"originalStatusCode"`
	}
	if json.Unmarshal(raw, &ev) != nil {
		return nil //nolint:nilerr // an event whose fields have other types is none of the errors
	}
	for kind, e := range ev {
		status, known := exceptions()[kind]
		if !known && !strings.HasSuffix(kind, "Exception") && !strings.HasSuffix(kind, "Error") {
			continue
		}
		if !known {
			status = 500
		}
		return &wire.StreamError{API: wire.APIError{Message: cmp.Or(e.Message, e.Upper, kind), Type: kind, Code: json.RawMessage(fmt.Sprint(status))}}
	}
	return nil
}

// exceptions are the errors within a stream, with the status that each has as a response.
func exceptions() map[string]int {
	return map[string]int{
		"internalServerException": 500, "modelStreamErrorException": 424, "modelTimeoutException": 408,
		"serviceUnavailableException": 503, "throttlingException": 429, "validationException": 400,
	}
}

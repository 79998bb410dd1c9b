package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// completion is an answer, or one event of a streamed one.
type completion struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   wire.Count      `json:"index"`
	Delta   *delta          `json:"delta"`   // in a stream
	Message *delta          `json:"message"` // in a response that is not streamed
	Finish  wire.Word       `json:"finish_reason"`
	Error   json.RawMessage `json:"error"` // OpenRouter's place of an error in a stream
}

// delta is a message or a part of one.
type delta struct {
	Content   json.RawMessage `json:"content"`           // text, null, or parts
	Refusal   string          `json:"refusal"`           // in place of the content
	Reasoning json.RawMessage `json:"reasoning_content"` // DeepSeek's, vLLM's and others' name
	Thinking  json.RawMessage `json:"reasoning"`         // OpenRouter's and Ollama's name
	ToolCalls []callPart      `json:"tool_calls"`
	Audio     *struct {
		Data       string `json:"data"` // base64
		Transcript string `json:"transcript"`
	} `json:"audio"`
	Images []struct { // OpenRouter's
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	} `json:"images"`
}

type usage struct {
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	Details    struct {
		Cached wire.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// assembler builds a response from its parts.
type assembler struct {
	draft   wire.ResponseBuilder
	think   wire.ThinkSplitter
	refused bool
	calls   []*call // the calls so far
	sound   []byte  // the spoken answer so far
	finish  string
	usage   model.Usage
	begun   bool // whether a choice was read
	done    bool // whether the closing record was read
}

// Complete reports whether the closing record was read; at the end of a stream also
// whether the answer is complete without it, as some servers omit it.
func (a *assembler) Complete(atEnd bool) bool { return a.done || atEnd && a.finish != "" }

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	var c completion
	if err := json.Unmarshal(raw, &c); err != nil {
		return wire.Shape(err)
	}
	if len(c.Choices) == 0 {
		return errors.New("no choices")
	}
	if c.Choices[0].Message == nil {
		return errors.New("the choice has no message")
	}
	c.Choices = c.Choices[:1]
	c.Choices[0].Index = 0 // some servers number from 1
	if _, err := a.take(c); err != nil {
		return err
	}
	_, err := a.draft.AppendText(a.think.End())
	return err
}

// Chunk reads one event of a stream and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	if string(raw) == "[DONE]" {
		a.done = true
		return a.draft.AppendText(a.think.End())
	}
	var c completion
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(c.Error); ok {
		return nil, &wire.StreamError{API: f}
	}
	if len(c.Choices) == 0 && c.Usage == nil { // an error without an error object
		if f, ok := wire.ParseAPIError(raw); ok {
			return nil, &wire.StreamError{API: f}
		}
	}
	return a.take(c)
}

// take adds the first choice: only one is requested.
func (a *assembler) take(c completion) ([]model.Event, error) {
	if c.Usage != nil { // totals, so the newest count replaces an older one
		a.usage = model.Usage{Input: int(c.Usage.Prompt), Output: int(c.Usage.Completion), Cached: int(c.Usage.Details.Cached)}
	}
	var events []model.Event
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		a.begun = true
		if f, ok := wire.ReadAPIError(ch.Error); ok {
			return nil, &wire.StreamError{API: f}
		}
		if ch.Finish != "" {
			a.finish = string(ch.Finish)
		}
		part := ch.Delta
		if part == nil {
			part = ch.Message
		}
		if part == nil {
			continue
		}
		evs, err := a.add(part, ch.Delta == nil)
		if err != nil {
			return nil, err
		}
		events = append(events, evs...)
		if ch.Finish == "" {
			continue
		}
		if evs, err = a.draft.AppendText(a.think.End()); err != nil {
			return nil, err
		}
		events = append(events, evs...)
	}
	return events, nil
}

// add adds a part of the message; with whole each tool call is complete.
func (a *assembler) add(part *delta, whole bool) ([]model.Event, error) {
	text, reasoning, err := contentText(part.Content)
	if err != nil {
		return nil, err
	}
	text, thought := a.think.Add(text)
	reasoning += thought
	for _, raw := range []json.RawMessage{part.Reasoning, part.Thinking} {
		if more, _, err := contentText(raw); err == nil && reasoning == "" {
			reasoning = more
		}
	}
	if part.Refusal != "" {
		a.refused = true
		text += part.Refusal
	}
	spoken, err := a.media(part)
	if err != nil {
		return nil, err
	}
	text += spoken
	for _, p := range part.ToolCalls {
		if err := a.call(p, whole); err != nil {
			return nil, err
		}
	}
	return a.draft.AppendText(text, reasoning)
}

// media adds the sound and the images of a part, and returns the text of the sound.
func (a *assembler) media(part *delta) (text string, err error) {
	for _, image := range part.Images {
		head, data, found := strings.Cut(image.Image.URL, ";base64,")
		if mime, ok := strings.CutPrefix(head, "data:"); !found || !ok {
			return "", errors.New("an image of the answer is not a data URL")
		} else if err := a.draft.AppendBase64(mime, data); err != nil {
			return "", err
		}
	}
	if part.Audio == nil {
		return "", nil
	}
	data, err := base64.StdEncoding.DecodeString(part.Audio.Data)
	if err != nil {
		return "", errors.New("the sound of the answer is not base64")
	}
	if len(a.sound)+len(data) > wire.MaxAnswer {
		return "", wire.ErrTooLong
	}
	a.sound = append(a.sound, data...)
	return part.Audio.Transcript, nil
}

// contentText reads text, null, or a list of parts, which reasoning models of Mistral
// return; it separates the reasoning among the parts.
func contentText(raw json.RawMessage) (text, reasoning string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", "", nil
	}
	switch raw[0] {
	case '{': // a part without a list
		raw = slices.Concat(json.RawMessage("["), raw, json.RawMessage("]"))
	case '"':
		err = json.Unmarshal(raw, &text)
		return text, "", err
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", "", errors.New("the content is neither text nor a list of parts")
	}
	for _, p := range parts {
		if p.Type == "thinking" {
			more, _, _ := contentText(p.Thinking)
			reasoning += more
			continue
		}
		text += p.Text
	}
	return text, reasoning, nil
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	if !a.begun {
		return nil, errors.New("no choices")
	}
	for _, c := range a.calls {
		a.draft.Call(c.id, c.name, c.arguments.String())
	}
	if a.refused {
		a.finish = "refusal"
	}
	if len(a.sound) > 0 { // in a stream it is pcm16, without a header
		if err := a.draft.AppendMedia(cmp.Or(mediatype.Detect(a.sound), "audio/pcm"), a.sound); err != nil {
			return nil, err
		}
		a.sound = nil
	}
	resp := &model.Response{Message: a.draft.Message(), Usage: a.usage}
	resp.Finish, resp.Reason = wire.Finish(a.finish, len(a.calls))
	return resp, nil
}

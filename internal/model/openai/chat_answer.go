package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// completion is an answer, or one event of a streamed one.
type completion struct {
	Choices []choice          `json:"choices"`
	Usage   wire.Loose[usage] `json:"usage"`
	Tier    wire.Word         `json:"service_tier"` // that was used
	Error   json.RawMessage   `json:"error"`
}

type choice struct {
	Index   wire.Count        `json:"index"`
	Delta   *delta            `json:"delta"`   // in a stream
	Message *delta            `json:"message"` // in a response that is not streamed
	Finish  wire.Word         `json:"finish_reason"`
	Error   json.RawMessage   `json:"error"` // OpenRouter's place of an error in a stream
	Usage   wire.Loose[usage] `json:"usage"` // Kimi's place of the usage in a stream
}

// delta is a message or a part of one.
type delta struct {
	Content   json.RawMessage `json:"content"`           // text, null, or parts
	Refusal   string          `json:"refusal"`           // in place of the content
	Reasoning json.RawMessage `json:"reasoning_content"` // DeepSeek's, vLLM's and others' name
	Thinking  json.RawMessage `json:"reasoning"`         // OpenRouter's and Ollama's name
	Details   detailList      `json:"reasoning_details"` // OpenRouter's and MiniMax's
	ToolCalls []callPart      `json:"tool_calls"`
	Function  *functionPart   `json:"function_call"` // the older form of one call
	Citations []annotation    `json:"annotations"`
	Audio     *struct {
		Data       string `json:"data"` // base64
		Transcript string `json:"transcript"`
	} `json:"audio"`
	Images []struct { // OpenRouter's
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	} `json:"images"`

	named json.RawMessage // the field that the catalogue names
}

// detailList is a list; another value has no elements.
type detailList []json.RawMessage

// UnmarshalJSON reads a list.
func (l *detailList) UnmarshalJSON(raw []byte) error {
	_ = json.Unmarshal(raw, (*[]json.RawMessage)(l)) // leaves it empty
	return nil
}

type usage struct {
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	Total      wire.Count `json:"total_tokens"`
	Cached     wire.Count `json:"cached_tokens"`           // Kimi's place
	CacheHit   wire.Count `json:"prompt_cache_hit_tokens"` // DeepSeek's name of cached_tokens
	Details    struct {
		Cached wire.Count `json:"cached_tokens"`
		Writes wire.Count `json:"cache_write_tokens"`
		Audio  wire.Count `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	Written struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// tokens returns the usage. The completion has the tokens of reasoning, except that of xAI.
func (u *usage) tokens() model.Usage {
	output := u.Completion
	if u.Total == u.Prompt+u.Completion+u.Written.Reasoning {
		output += u.Written.Reasoning
	}
	return model.Usage{Input: int(u.Prompt), Output: int(output), Cached: int(max(u.Details.Cached, u.Cached, u.CacheHit)),
		CacheWrite: int(u.Details.Writes), AudioInput: int(u.Details.Audio), Reasoning: int(u.Written.Reasoning)}
}

// assembler builds a response from its parts.
type assembler struct {
	draft     wire.ResponseBuilder
	think     wire.ThinkSplitter
	reasoning reasoning
	texts     map[string]string // the properties of the arguments that get texts, by tool
	cited     []chat.Block      // the sources
	part      object            // the attributes of a part with reasoning that is not complete; nil for none
	thought   bool              // whether that part has text
	refused   bool
	calls     []*call // the calls so far
	older     bool    // whether they come as function_call
	sound     []byte  // the spoken answer so far
	finish    string
	usage     model.Usage
	begun     bool // whether a choice was read
	done      bool // whether the closing record was read
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
	if err := a.readNamed(raw, c.Choices); err != nil {
		return err
	}
	if _, err := a.take(c); err != nil {
		return err
	}
	_, err := a.endText()
	return err
}

// endText adds what was held back of the text.
func (a *assembler) endText() ([]model.Event, error) {
	text, thought := a.think.End()
	events, err := a.appendReasoning(thought, "")
	if err != nil {
		return nil, err
	}
	more, err := a.appendText(text)
	return append(events, more...), err
}

// readNamed reads the field with reasoning that only the catalogue names.
func (a *assembler) readNamed(raw []byte, choices []choice) error {
	if a.reasoning.named == "" {
		return nil
	}
	var c struct {
		Choices []struct {
			Delta   object `json:"delta"`
			Message object `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return wire.Shape(err)
	}
	for i, ch := range choices {
		if ch.Delta != nil {
			ch.Delta.named = c.Choices[i].Delta[a.reasoning.named]
		}
		if ch.Message != nil {
			ch.Message.named = c.Choices[i].Message[a.reasoning.named]
		}
	}
	return nil
}

// Chunk reads one event of a stream and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	if string(raw) == "[DONE]" {
		a.done = true
		return a.endText()
	}
	var c completion
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(c.Error); ok {
		return nil, &wire.StreamError{API: f}
	}
	if len(c.Choices) == 0 && !c.Usage.Set { // an error without an error object
		if f, ok := wire.ParseAPIError(raw); ok {
			return nil, &wire.StreamError{API: f}
		}
	}
	if err := a.readNamed(raw, c.Choices); err != nil {
		return nil, err
	}
	return a.take(c)
}

// count keeps a usage. They are totals, so the newest one replaces an older one.
func (a *assembler) count(u wire.Loose[usage]) {
	if u.Set {
		tier := a.usage.Tier
		a.usage = u.Value.tokens()
		a.usage.Tier = tier
	}
}

// take adds the first choice: only one is requested.
func (a *assembler) take(c completion) ([]model.Event, error) {
	a.count(c.Usage)
	if c.Tier != "" {
		a.usage.Tier = string(c.Tier)
	}
	var events []model.Event
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		a.begun = true
		a.count(ch.Usage)
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
		if evs, err = a.endText(); err != nil {
			return nil, err
		}
		events = append(events, evs...)
	}
	return events, nil
}

// add adds a part of the message; with whole each tool call is complete.
func (a *assembler) add(part *delta, whole bool) ([]model.Event, error) {
	events, err := a.appendReasoning(a.reasoning.read(part))
	if err != nil {
		return nil, err
	}
	spoken, err := a.media(part)
	if err != nil {
		return nil, err
	}
	more, err := a.content(part.Content)
	if err != nil {
		return nil, err
	}
	events = append(events, more...)
	a.refused = a.refused || part.Refusal != ""
	if more, err = a.appendText(part.Refusal + spoken); err != nil {
		return nil, err
	}
	if part.Function != nil && len(part.ToolCalls) == 0 && (a.older || len(a.calls) == 0) {
		a.older = true
		part.ToolCalls = []callPart{{Index: new(wire.Count), Function: *part.Function}}
	}
	for _, p := range part.ToolCalls {
		if err := a.call(p, whole); err != nil {
			return nil, err
		}
	}
	for _, c := range part.Citations {
		a.cited = cite(a.cited, c)
	}
	return append(events, more...), nil
}

// content adds the content of a part: text, or parts, which Mistral sends with the reasoning.
func (a *assembler) content(raw json.RawMessage) ([]model.Event, error) {
	if len(raw) > 0 && (raw[0] == '[' || raw[0] == '{') {
		return a.parts(raw)
	}
	text, err := contentText(raw)
	if err != nil {
		return nil, err
	}
	if a.reasoning.keeps {
		if a.reasoning.content.Len()+len(text) > wire.MaxAnswer {
			return nil, wire.ErrTooLong
		}
		a.reasoning.content.WriteString(text)
	}
	text, thought := a.think.Add(text)
	events, err := a.appendReasoning(thought, "")
	if err != nil {
		return nil, err
	}
	more, err := a.appendText(text)
	return append(events, more...), err
}

// media adds the sound and the images of a part, and returns the text of the sound.
func (a *assembler) media(part *delta) (text string, err error) {
	if len(part.Images) > 0 {
		if err := a.endReasoning(); err != nil {
			return "", err
		}
	}
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

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	if !a.begun {
		return nil, errors.New("no choices")
	}
	if err := errors.Join(a.endPart(), a.reasoning.close(&a.draft)); err != nil {
		return nil, err
	}
	for _, b := range a.cited {
		a.draft.Append(b)
	}
	for _, c := range a.calls {
		if err := a.addCall(c); err != nil {
			return nil, err
		}
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
	a.reasoning.place(&resp.Message)
	resp.Finish, resp.Reason = wire.Finish(a.finish, len(a.calls))
	return resp, nil
}

package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// responseObject is a response, complete or not.
type responseObject struct {
	Output     []json.RawMessage `json:"output"`
	Status     string            `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage wire.Loose[responseUsage] `json:"usage"`
	Tier  wire.Word                 `json:"service_tier"` // that was used
}

type responseUsage struct {
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Details struct {
		Cached wire.Count `json:"cached_tokens"`
		Writes wire.Count `json:"cache_write_tokens"`
		ByLife struct {
			Minutes30 wire.Count `json:"ttl_30m_tokens"`
			Hours12   wire.Count `json:"ttl_12h_tokens"`
		} `json:"cache_write_tokens_details"`
	} `json:"input_tokens_details"`
	Written struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// tokens returns the usage.
func (u *responseUsage) tokens() model.Usage {
	writes := catalogue.CacheWrites{Minutes30: int(u.Details.ByLife.Minutes30), Hours12: int(u.Details.ByLife.Hours12)}
	return model.Usage{Input: int(u.Input), Output: int(u.Output), Cached: int(u.Details.Cached), Reasoning: int(u.Written.Reasoning),
		CacheWrite: max(int(u.Details.Writes), writes.Sum()), CacheWrites: writes}
}

// outputItem is an item of an output. Items of other types than the client reads have none of this.
type outputItem struct {
	Type      string          `json:"type"`
	Phase     json.RawMessage `json:"phase"` // of a message
	Content   json.RawMessage `json:"content"`
	Summary   []outputPart    `json:"summary"` // of reasoning
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     string          `json:"input"`  // of a call of a tool with a grammar
	Result    string          `json:"result"` // an image that a tool of OpenAI made
	Format    string          `json:"output_format"`
}

// outputPart is a part of a message or of reasoning.
type outputPart struct {
	Text        string       `json:"text"`
	Refusal     string       `json:"refusal"`
	Annotations []annotation `json:"annotations"`
}

// isCommentary reports whether a message is no part of the answer.
func (it *outputItem) isCommentary() bool { return string(it.Phase) == `"commentary"` }

// parts returns the content of a message or of reasoning.
func (it *outputItem) parts() (parts []outputPart, err error) {
	if !isSet(it.Content) {
		return nil, nil
	}
	if err := json.Unmarshal(it.Content, &parts); err != nil {
		return nil, wire.Shape(err)
	}
	return parts, nil
}

// responseReader builds a response from its items. In a stream, an item is complete only in its
// last event, which makes its blocks; those before it are deltas for the reader of the answer.
type responseReader struct {
	draft    wire.ResponseBuilder
	texts    map[string]string // the properties of the arguments that get texts, by tool
	servers  map[string]string // the hosted tools, by the labels of their servers
	items    int               // the number of items that were added
	open     outputItem        // the newest message that has begun
	streamed strings.Builder   // deltas of the text that have no item yet
	thought  strings.Builder   // deltas of reasoning that have no item yet
	cited    []chat.Block      // the sources
	finish   string
	usage    model.Usage
	done     bool
}

// Complete reports whether the closing event was read.
func (a *responseReader) Complete(bool) bool { return a.done }

// Whole reads a response that is not streamed.
func (a *responseReader) Whole(raw []byte) error {
	var r responseObject
	if err := json.Unmarshal(raw, &r); err != nil {
		return wire.Shape(err)
	}
	if r.Output == nil && !isSet(r.Error) && r.Status != "failed" {
		return errors.New("no output")
	}
	_, err := a.close(r)
	return err
}

// Chunk reads one event of a stream and returns its deltas.
func (a *responseReader) Chunk(raw []byte) ([]model.Event, error) {
	var ev struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Item     json.RawMessage `json:"item"`
		Part     wire.Count      `json:"summary_index"`
		Response responseObject  `json:"response"`
	}
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, wire.Shape(err)
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if ev.Type == "response.refusal.delta" {
			a.finish = "refusal"
		}
		return a.textDelta(ev.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.reasoningDelta(ev.Delta)
	case "response.reasoning_summary_part.added":
		if ev.Part > 0 {
			return a.reasoningDelta(encode(paragraph))
		}
	case "response.output_item.added":
		a.open = outputItem{}
		return nil, shape(json.Unmarshal(ev.Item, &a.open))
	case "response.output_item.done":
		return a.item(ev.Item)
	case "response.completed", "response.incomplete", "response.failed":
		a.done = true
		return a.close(ev.Response)
	case "error", "": // an error, also without the form of an event
		if f, ok := wire.ParseAPIError(raw); ok {
			return nil, &wire.StreamError{API: f.OfEvent()}
		}
	}
	return nil, nil
}

// paragraph separates the parts of reasoning.
const paragraph = "\n\n"

// shape is wire.Shape for an error that may be nil.
func shape(err error) error {
	if err == nil {
		return nil
	}
	return wire.Shape(err)
}

// textDelta returns the delta of a text.
func (a *responseReader) textDelta(raw json.RawMessage) ([]model.Event, error) {
	begins := a.streamed.Len() == 0
	text, err := a.delta(raw, &a.streamed)
	switch {
	case text == "" || err != nil:
		return nil, err
	case a.open.isCommentary():
		return []model.Event{{Commentary: text}}, nil
	case begins:
		text = a.draft.TextSeparator() + text
	}
	return []model.Event{{Text: text}}, nil
}

// reasoningDelta returns the delta of reasoning.
func (a *responseReader) reasoningDelta(raw json.RawMessage) ([]model.Event, error) {
	text, err := a.delta(raw, &a.thought)
	if text == "" || err != nil {
		return nil, err
	}
	return []model.Event{{Reasoning: text}}, nil
}

// delta decodes a delta and adds it to those of its item.
func (a *responseReader) delta(raw json.RawMessage, to *strings.Builder) (text string, err error) {
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", wire.Shape(err)
	}
	if to.Len()+len(text) > wire.MaxAnswer {
		return "", wire.ErrTooLong
	}
	to.WriteString(text)
	return text, nil
}

// item adds a complete item of the output, and returns the deltas of its text if there were none.
func (a *responseReader) item(raw json.RawMessage) ([]model.Event, error) {
	var it outputItem
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, wire.Shape(err)
	}
	a.items++
	switch kind.Type {
	case messageItem, reasoningItem, functionItem, customItem, imageItem:
		if err := json.Unmarshal(raw, &it); err != nil {
			return nil, wire.Shape(err)
		}
	}
	switch kind.Type {
	case messageItem:
		return a.message(&it)
	case reasoningItem:
		return a.reasoning(raw, &it)
	case functionItem, customItem:
		return nil, a.call(raw, &it)
	case model.ApprovalRequest:
		return nil, a.approval(raw)
	case imageItem:
		if it.Result != "" {
			return nil, a.image(raw, &it)
		}
	}
	return nil, a.draft.AppendItem(chat.ItemType, "", chat.Item{Field: kind.Type, JSON: string(raw)})
}

// message adds a message: a part of the answer, or what the model writes before it.
func (a *responseReader) message(it *outputItem) (events []model.Event, err error) {
	parts, err := it.parts()
	if err != nil {
		return nil, err
	}
	streamed := a.streamed.Len() > 0
	a.streamed.Reset()
	a.draft.Close()
	kind, add := "text", func(text string) ([]model.Event, error) { return a.draft.AppendText(text, "") }
	if it.isCommentary() {
		kind, add = chat.CommentaryType, a.draft.AppendCommentary
	}
	empty := true
	for _, part := range parts {
		if part.Refusal != "" {
			a.finish = "refusal"
		}
		for _, c := range part.Annotations {
			a.cited = cite(a.cited, c)
		}
		more, err := add(part.Text + part.Refusal)
		if err != nil {
			return nil, err
		}
		events, empty = append(events, more...), empty && len(more) == 0
	}
	if !empty && isSet(it.Phase) {
		err = a.draft.Attach(kind, chat.Item{Field: messageItem, JSON: string(encode(object{"phase": it.Phase}))})
	}
	if streamed {
		return nil, err
	}
	return events, err
}

// reasoning adds a reasoning item.
func (a *responseReader) reasoning(raw json.RawMessage, it *outputItem) ([]model.Event, error) {
	parts, err := it.parts()
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		parts = it.Summary
	}
	var texts []string
	for _, part := range parts {
		texts = append(texts, part.Text)
	}
	text, streamed := strings.Join(texts, paragraph), a.thought.String()
	a.thought.Reset()
	if text == "" {
		text = streamed
	}
	err = a.draft.AppendItem(chat.ReasoningType, text, chat.Item{Field: reasoningItem, JSON: string(raw)})
	if streamed != "" || text == "" {
		return nil, err
	}
	return []model.Event{{Reasoning: text}}, err
}

// call adds a call. What the item has in addition to the call goes back with it, such as its namespace.
func (a *responseReader) call(raw json.RawMessage, it *outputItem) error {
	arguments, err := argumentText(it.Arguments)
	if err != nil {
		return wire.Shape(err)
	}
	if it.Type == customItem {
		arguments = textArguments(a.texts[it.Name], it.Input)
	}
	a.draft.Call(it.CallID, it.Name, arguments)
	var more object
	if err := json.Unmarshal(raw, &more); err != nil {
		return wire.Shape(err)
	}
	for _, name := range []string{"type", "id", "call_id", "name", "arguments", "input", "status"} {
		delete(more, name)
	}
	for name, value := range more {
		if !isSet(value) {
			delete(more, name)
		}
	}
	if len(more) == 0 && it.Type == functionItem {
		return nil
	}
	return a.draft.Attach(chat.CallType, chat.Item{Field: it.Type, JSON: string(encode(more))})
}

// image adds an image that a tool of OpenAI made. Its item goes back with the data of the block.
func (a *responseReader) image(raw json.RawMessage, it *outputItem) error {
	data, err := base64.StdEncoding.DecodeString(it.Result)
	if err != nil {
		return errors.New("the image of the answer is not base64")
	}
	mime := wire.ImageType(data)
	if it.Format == "svg" {
		mime = "image/svg+xml"
	}
	if err := a.draft.AppendMedia(mime, data); err != nil {
		return err
	}
	var more object
	if err := json.Unmarshal(raw, &more); err != nil {
		return wire.Shape(err)
	}
	delete(more, "result")
	return a.draft.Attach("image", chat.Item{Field: imageItem, JSON: string(encode(more))})
}

// close reads what a response has in addition to its items, and the items that no event had.
func (a *responseReader) close(r responseObject) (events []model.Event, err error) {
	if err := r.failure(); err != nil {
		return nil, err
	}
	for _, raw := range r.Output[min(a.items, len(r.Output)):] {
		more, err := a.item(raw)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	if text := a.streamed.String(); text != "" && !a.open.isCommentary() { // a message that was cut off
		a.draft.Close()
		if _, err := a.draft.AppendText(text, ""); err != nil {
			return nil, err
		}
	}
	for _, b := range a.cited {
		a.draft.Append(b)
	}
	if r.Usage.Set {
		a.usage = r.Usage.Value.tokens()
	}
	a.usage.Tier = string(r.Tier)
	if r.Incomplete != nil && r.Status == "incomplete" {
		a.finish = r.Incomplete.Reason
	}
	return events, nil
}

// failure returns the error of a response that is not complete, nil for none.
func (r *responseObject) failure() error {
	if f, ok := wire.ReadAPIError(r.Error); ok {
		if f.Type == "" { // the code is the kind of the error
			_ = json.Unmarshal(f.Code, &f.Type) // leaves it empty
		}
		return &wire.StreamError{API: f}
	}
	switch r.Status {
	case "", "completed", "incomplete":
		return nil
	}
	return &wire.StreamError{API: wire.APIError{Type: "server_error", Message: fmt.Sprintf("the response has the status %s and no error", r.Status)}}
}

// Response returns the complete answer.
func (a *responseReader) Response() (*model.Response, error) {
	resp := &model.Response{Message: a.draft.Message(), Usage: a.usage}
	resp.Finish, resp.Reason = wire.Finish(a.finish, a.draft.Calls())
	return resp, nil
}

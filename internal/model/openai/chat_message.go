package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The items of messages of chat completions have the names of the fields in which they came:
// reasoning_content, reasoning and others with a text, which is that of the block; reasoning_details;
// and these.
const (
	contentField   = "content"          // the beginning of the content, with <think>, as JSON text
	partField      = "content."         // followed by the type: a part of the content
	thinkingPart   = "content.thinking" // a part with reasoning; its JSON has attributes, or the whole part
	callField      = "extra_content"    // of a call: Google's signature
	customField    = "custom"           // of a call: of a tool with a grammar
	detailsField   = "reasoning_details"
	requiredInCall = "reasoning_content" // models can require it with calls

	signatureInCall = "functionCall.thoughtSignature" // the name in the catalogue of what Google requires with calls
)

// returnPolicy is which messages of a conversation keep what the server sent next to their texts.
type returnPolicy struct {
	texts bool // messages without calls
	past  bool // messages of earlier turns
}

// newReturnPolicy returns the policy of a model. The default is what its turn needs: messages with
// calls of the current turn.
func newReturnPolicy(known *catalogue.Model, thinking json.RawMessage) returnPolicy {
	var set struct {
		Clear *bool `json:"clear_thinking"` // of GLM
	}
	_ = json.Unmarshal(thinking, &set) // leaves nil
	switch {
	case set.Clear != nil && !*set.Clear, thinksInText(known):
		return returnPolicy{texts: true, past: true}
	case known.Requires(requiredInCall):
		return returnPolicy{past: true}
	}
	return returnPolicy{}
}

// thinksInText reports whether a model wants the reasoning back that is in the text of its answers.
func thinksInText(known *catalogue.Model) bool {
	return known != nil && strings.Contains(known.Reasoning.Answer, "<think>")
}

// apply returns messages without what is not sent back. Items of calls stay: they belong to the call.
func (r returnPolicy) apply(messages []chat.Message) []chat.Message {
	start, out := wire.TurnStart(messages), messages
	for i := range messages {
		m := &messages[i]
		if (r.past || i >= start) && (r.texts || m.HasCalls()) || !slices.ContainsFunc(m.Blocks, isReturned) {
			continue
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		out[i].Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), isReturned)
	}
	return out
}

// isReturned reports whether a block has reasoning, or nothing but an item.
func isReturned(b chat.Block) bool { return b.IsModels() && b.Call == nil }

// returnedFields sets the fields of an encoded message that the server sent next to the text.
func returnedFields(fields object, m *chat.Message) {
	texts := map[string]string{}
	for _, b := range m.Blocks {
		switch {
		case b.Item == nil || b.Call != nil || strings.HasPrefix(b.Item.Field, partField):
		case b.Item.Field == contentField:
			var begin, text string
			_, _ = json.Unmarshal([]byte(b.Item.JSON), &begin), json.Unmarshal(fields[contentField], &text) // null is no text
			fields[contentField] = encode(begin + text)
		case b.Item.JSON != "":
			fields[b.Item.Field] = json.RawMessage(b.Item.JSON)
		default:
			texts[b.Item.Field] += b.Text
		}
	}
	for name, text := range texts {
		fields[name] = encode(text)
	}
	if parts := contentParts(m); parts != nil {
		fields[contentField] = encode(parts)
	}
	returnedCalls(fields, m)
}

// contentParts returns the content of a message as parts, nil if none of them is the server's.
func contentParts(m *chat.Message) (parts []json.RawMessage) {
	own := false
	for _, b := range m.Blocks {
		switch {
		case b.Item != nil && b.Item.Field == thinkingPart:
			own, parts = true, append(parts, encodeThinking(b))
		case b.Item != nil && strings.HasPrefix(b.Item.Field, partField):
			own, parts = true, append(parts, json.RawMessage(b.Item.JSON))
		case b.Type == "text" && b.Text != "":
			parts = append(parts, encode(map[string]string{"type": "text", "text": b.Text}))
		}
	}
	if !own {
		return nil
	}
	return parts
}

// encodeThinking encodes a part with reasoning.
func encodeThinking(b chat.Block) json.RawMessage {
	part := attributes(b.Item)
	if _, whole := part["type"]; whole {
		return json.RawMessage(b.Item.JSON)
	}
	part = part.with(map[string]string{"type": "thinking"})
	part["thinking"] = encode([]map[string]string{{"type": "text", "text": b.Text}})
	return encode(part)
}

// otherModel is Google's documented signature for calls of other models.
const otherModel = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// signFirstCall gives the first call of a message a signature if it has none, as that of another model.
func signFirstCall(fields object) {
	var calls []object
	if json.Unmarshal(fields["tool_calls"], &calls) != nil || len(calls) == 0 || isSet(calls[0][callField]) {
		return
	}
	calls[0][callField] = json.RawMessage(otherModel)
	fields["tool_calls"] = encode(calls)
}

// returnedCalls sets what the server sent with the calls of a message.
func returnedCalls(fields object, m *chat.Message) {
	if !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return b.Call != nil && b.Item != nil }) {
		return
	}
	var calls []object
	if json.Unmarshal(fields["tool_calls"], &calls) != nil {
		return // a message with calls has them
	}
	i := 0
	for _, b := range m.Blocks {
		if b.Call == nil {
			continue
		}
		switch {
		case b.Item == nil:
		case b.Item.Field == customField:
			calls[i] = object{"id": encode(b.Call.ID), "type": encode("custom"), "custom": encode(map[string]string{"name": b.Call.Name, "input": argumentsText(b.Call.Arguments)})}
		default:
			calls[i][b.Item.Field] = json.RawMessage(b.Item.JSON)
		}
		i++
	}
	fields["tool_calls"] = encode(calls)
}

// answerPart is a part of the content of an answer.
type answerPart struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking json.RawMessage `json:"thinking"`
}

// readParts reads a list of parts, or a part without a list.
func readParts(raw json.RawMessage) (list []json.RawMessage, err error) {
	if raw[0] == '{' {
		return []json.RawMessage{raw}, nil
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, errBadContent
	}
	return list, nil
}

// errBadContent reports content that has neither form of the protocol.
var errBadContent = errors.New("the content is neither text nor a list of parts")

// contentText reads text, null, or a list of parts, without the reasoning among the parts.
func contentText(raw json.RawMessage) (text string, err error) {
	if !isSet(raw) {
		return "", nil
	}
	if raw[0] == '"' {
		err = json.Unmarshal(raw, &text)
		return text, err
	}
	if raw[0] != '[' && raw[0] != '{' {
		return "", errBadContent
	}
	list, err := readParts(raw)
	for _, raw := range list {
		var p answerPart
		if json.Unmarshal(raw, &p) != nil {
			return "", errBadContent
		}
		text += p.Text
	}
	return text, err
}

// parts adds the parts of a content. Streams send a part with reasoning in pieces.
func (a *assembler) parts(raw json.RawMessage) (events []model.Event, err error) {
	list, err := readParts(raw)
	for _, raw := range list {
		var p answerPart
		if json.Unmarshal(raw, &p) != nil {
			return nil, errBadContent
		}
		var more []model.Event
		switch p.Type {
		case "thinking":
			more, err = a.thinking(raw, p)
		case "text", "":
			more, err = a.appendText(p.Text)
		default: // such as a reference
			if err = a.endReasoning(); err == nil {
				err = a.draft.AppendItem(chat.ItemType, "", chat.Item{Field: partField + p.Type, JSON: string(raw)})
			}
		}
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, err
}

// thinking adds a part with reasoning, or a piece of one.
func (a *assembler) thinking(raw json.RawMessage, p answerPart) ([]model.Event, error) {
	text, err := contentText(p.Thinking)
	if err != nil {
		return nil, err
	}
	var part object
	if json.Unmarshal(raw, &part) != nil {
		return nil, errBadContent
	}
	var pieces []object
	if json.Unmarshal(p.Thinking, &pieces) != nil || slices.ContainsFunc(pieces, func(o object) bool { return o.text("type") != "text" }) {
		if err := a.endReasoning(); err != nil { // goes back as it came
			return nil, err
		}
		return []model.Event{{Reasoning: text}}, a.draft.AppendItem(chat.ReasoningType, text, chat.Item{Field: thinkingPart, JSON: string(raw)})
	}
	if a.part == nil {
		if err := a.endReasoning(); err != nil {
			return nil, err
		}
		a.draft.Close()
		a.part = object{}
	}
	delete(part, "type")
	delete(part, "thinking")
	maps.Copy(a.part, part)
	if text == "" {
		return nil, nil
	}
	a.thought = true
	return a.draft.AppendText("", text)
}

// endPart completes a part with reasoning.
func (a *assembler) endPart() error {
	part, thought := a.part, a.thought
	if a.part, a.thought = nil, false; part == nil || !thought {
		return nil
	}
	item := chat.Item{Field: thinkingPart}
	if len(part) > 0 {
		item.JSON = string(encode(part))
	}
	return a.draft.Attach(chat.ReasoningType, item)
}

// withToolMedia returns messages in which tool messages are texts, as chat completions
// require: the images, sounds and documents of the results follow in a message of the
// user, after the results of all calls of an answer.
func withToolMedia(messages []chat.Message) []chat.Message {
	isResult := func(m chat.Message) bool { return wire.NormalizeRole(m.Role) == chat.Tool }
	if !slices.ContainsFunc(messages, func(m chat.Message) bool { return isResult(m) && hasMedia(m) }) {
		return messages
	}
	var all []chat.Message
	var media []chat.Block
	for i, m := range messages {
		if isResult(m) && hasMedia(m) {
			var own []chat.Block
			m, own = splitMedia(m)
			media = append(media, own...)
		}
		all = append(all, m)
		if last := i == len(messages)-1 || !isResult(messages[i+1]); last && len(media) > 0 {
			all, media = append(all, chat.Message{Role: chat.User, Blocks: media}), nil
		}
	}
	return all
}

func hasMedia(m chat.Message) bool { return slices.ContainsFunc(m.Blocks, chat.Block.Media) }

// splitMedia returns the result of a tool as text that refers to its media, and blocks with
// the media. Media that chat completions do not have are named in the text only.
func splitMedia(m chat.Message) (chat.Message, []chat.Block) {
	text := chat.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID}
	var media []chat.Block
	for _, b := range m.Blocks {
		switch {
		case !b.Media():
			text.Blocks = append(text.Blocks, b)
		case isUnsupported(b):
			text.Blocks = append(text.Blocks, chat.Block{Type: "text", Text: wire.ResultNote(b)})
		default:
			media = append(media, b)
		}
	}
	if len(media) == 0 {
		return text, nil
	}
	name := m.ToolCallID
	if m.Name != "" {
		name = m.Name + " (" + m.ToolCallID + ")"
	}
	text.Blocks = append(text.Blocks, chat.Block{Type: "text", Text: "[the files of this result are in the next message of the user]"})
	title := chat.Block{Type: "text", Text: fmt.Sprintf("[files of the result of the tool %s]", name)}
	return text, append([]chat.Block{title}, media...)
}

// isUnsupported reports whether chat completions do not have the media of a result.
func isUnsupported(b chat.Block) bool {
	return b.Media() && (supportedContent(chat.Message{Blocks: []chat.Block{b}}) != nil || b.Type == "video" || b.Type == "bytes")
}

// withMediaNotes returns the result of a tool with a text in place of each unsupported medium.
func withMediaNotes(m chat.Message) chat.Message {
	if slices.ContainsFunc(m.Blocks, isUnsupported) {
		m.Blocks = slices.Clone(m.Blocks)
		for i, b := range m.Blocks {
			if isUnsupported(b) {
				m.Blocks[i] = chat.Block{Type: "text", Text: wire.ResultNote(b)}
			}
		}
	}
	return m
}

// withFileTexts replaces files that are text by their text: files must be PDF documents.
func withFileTexts(m chat.Message) chat.Message {
	for i, b := range m.Blocks {
		if text, ok := wire.FileText(b); ok {
			m.Blocks = slices.Clone(m.Blocks)
			m.Blocks[i] = chat.Block{Type: "text", Text: text}
		}
	}
	return m
}

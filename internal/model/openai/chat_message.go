package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
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

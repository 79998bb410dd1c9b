package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

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

package anthropic

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

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

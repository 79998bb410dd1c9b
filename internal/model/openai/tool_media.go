package openai

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

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

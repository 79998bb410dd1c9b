package bedrock

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// turn is a message of the protocol: everything that one side adds before the other side
// does.
type turn struct {
	Role    string  `json:"role"` // user, assistant or system
	Content []block `json:"content"`
}

// block is a part of a message; one of its fields is set.
type block struct {
	Text      *string         `json:"text,omitempty"`
	Image     *media          `json:"image,omitempty"`
	Document  *media          `json:"document,omitempty"`
	Video     *media          `json:"video,omitempty"`
	Use       *toolUse        `json:"toolUse,omitempty"`
	Result    *toolResult     `json:"toolResult,omitempty"`
	Reasoning json.RawMessage `json:"reasoningContent,omitempty"`
	Cited     *citedText      `json:"citationsContent,omitempty"` // of an answer
	Found     *searchResult   `json:"searchResult,omitempty"`
	Cache     *cachePoint     `json:"cachePoint,omitempty"`

	raw json.RawMessage // the whole of a block that only Bedrock knows, such as the use of a hosted tool
}

// MarshalJSON writes a block that only Bedrock knows as it came.
func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	return json.Marshal(plain(b))
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	Type  string          `json:"type,omitempty"` // server_tool_use for a tool of Bedrock; empty for a function
}

type toolResult struct {
	ID      string  `json:"toolUseId"`
	Content []block `json:"content"`
}

// reasoning is the content of a block of reasoning: a text with its signature, or encrypted.
type reasoning struct {
	Text     *thoughtText `json:"reasoningText,omitempty"`
	Redacted string       `json:"redactedContent,omitempty"` // base64
}

type thoughtText struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// The fields of items: reasoning, and whole blocks.
const (
	reasoningField = "reasoningContent"
	blockField     = "block"
)

func textBlock(text string) block { return block{Text: &text} }

// turnsOf merges adjacent messages of one side: the results of several calls must be in the
// message that follows the calls. The first message must be the user's; a window that
// begins with an answer gets one that states this.
func turnsOf(messages []chat.Message) ([]turn, error) {
	turns := []turn{}
	documents := 0
	for _, m := range messages {
		role := "user"
		if own := wire.NormalizeRole(m.Role); own == chat.Assistant || own == chat.System {
			role = string(own)
		}
		blocks, err := blocksOf(m, &documents)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 { // empty content is not allowed
			continue
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
			continue
		}
		turns = append(turns, turn{Role: role, Content: blocks})
	}
	return turns, nil
}

// blocksOf encodes a message.
func blocksOf(m chat.Message, documents *int) ([]block, error) {
	role := wire.NormalizeRole(m.Role)
	if role == chat.Tool && m.ToolCallID != "" {
		return []block{{Result: &toolResult{ID: plainID(m.ToolCallID), Content: resultOf(m, documents)}}}, nil
	}
	var blocks []block
	hasText, hasDocument := false, false
	for _, b := range m.Blocks {
		if role == chat.Assistant && b.IsCitation() {
			continue
		}
		if b.IsModels() {
			if made, ok := answerBlock(b); ok {
				blocks = append(blocks, made)
			}
			continue
		}
		made, err := encodeBlock(b, documents)
		if err != nil {
			return nil, err
		}
		if made.Text != nil && strings.TrimSpace(*made.Text) == "" { // blank texts are rejected
			continue
		}
		hasText, hasDocument = hasText || made.Text != nil, hasDocument || made.Document != nil
		blocks = append(blocks, made)
	}
	if hasDocument && !hasText { // a document needs a text next to it
		blocks = append(blocks, textBlock("The document is attached."))
	}
	return blocks, nil
}

// answerBlock encodes a block that only models make. It is false for reasoning that cannot be
// sent back.
func answerBlock(b chat.Block) (block, bool) {
	switch {
	case b.Call != nil:
		return block{Use: &toolUse{ID: plainID(b.Call.ID), Name: b.Call.Name, Input: wire.Arguments(b.Call.Arguments)}}, true
	case b.Item == nil || !json.Valid([]byte(b.Item.JSON)):
		return block{}, false
	case b.Item.Field == reasoningField:
		return block{Reasoning: json.RawMessage(b.Item.JSON)}, true
	}
	return block{raw: json.RawMessage(b.Item.JSON)}, true
}

// resultOf encodes the result of a tool: its text, and images and documents.
func resultOf(m chat.Message, documents *int) []block {
	content := []block{}
	if text := m.Text(); strings.TrimSpace(text) != "" || !hasMedia(m) {
		content = append(content, textBlock(text))
	}
	for _, b := range m.Blocks {
		if !b.Media() {
			continue
		}
		made, err := encodeBlock(b, documents)
		if err != nil {
			made = textBlock(wire.ResultNote(b))
		}
		content = append(content, made)
	}
	return content
}

func hasMedia(m chat.Message) bool { return slices.ContainsFunc(m.Blocks, chat.Block.Media) }

// plainID converts the id of a call, which another provider may have assigned, to one that
// Bedrock accepts.
func plainID(id string) string {
	id = wire.PlainID(id)
	return id[max(0, len(id)-64):]
}

// withoutReasoning returns messages without the reasoning before a message.
func withoutReasoning(messages []chat.Message, end int) []chat.Message {
	kept := slices.Clone(messages)
	for i := range kept[:end] {
		kept[i].Blocks = slices.DeleteFunc(slices.Clone(kept[i].Blocks), func(b chat.Block) bool { return b.Type == chat.ReasoningType })
	}
	return kept
}

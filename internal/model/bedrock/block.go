package bedrock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
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

// media is an image, a document or a video.
type media struct {
	Format string `json:"format"`
	Name   string `json:"name,omitempty"` // of a document
	Source source `json:"source"`
}

// source is the data of media or where they are.
type source struct {
	Bytes []byte    `json:"bytes,omitempty"` // as base64
	S3    *location `json:"s3Location,omitempty"`
}

type location struct {
	URI string `json:"uri"`
}

// encodeBlock encodes a text, an image, a document or a video. The number of
// documents is increased by one for a document: their names must be different.
func encodeBlock(b chat.Block, documents *int) (block, error) {
	switch b.Type {
	case wire.PassageType:
		return passageBlock(b.Text)
	case "image", "file", "video":
	default:
		if b.Media() {
			return block{}, wire.UnsupportedContent(b, "aws-bedrock")
		}
		return textBlock(b.Text), nil
	}
	from := source{Bytes: b.Data}
	if !b.Media() {
		if !strings.HasPrefix(b.Text, "s3://") {
			return block{}, fmt.Errorf("%s must be bytes or an s3:// address for aws-bedrock, not a URL", b.Type)
		}
		from = source{S3: &location{URI: b.Text}}
	}
	m := &media{Format: formatOf(b), Source: from}
	if m.Format == "" {
		return block{}, wire.UnsupportedContent(b, "aws-bedrock")
	}
	switch b.Type {
	case "image":
		return block{Image: m}, nil
	case "video":
		return block{Video: m}, nil
	}
	*documents++
	m.Name = fmt.Sprintf("document %d", *documents)
	return block{Document: m}, nil
}

// formatOf returns Bedrock's name of the format of a block, empty if it has none.
func formatOf(b chat.Block) string {
	kind, _, _ := strings.Cut(b.MimeType, ";")
	switch {
	case kind == "" && b.Type == "image" && b.Media():
		kind = wire.ImageType(b.Data)
	case kind == "" && b.Media():
		kind, _, _ = strings.Cut(http.DetectContentType(b.Data), ";")
	case kind == "":
		return formatOfName(b.Text)
	}
	return formats()[b.Type+" "+kind]
}

// formatOfName returns the format by the end of an address.
func formatOfName(address string) string {
	end := strings.ToLower(address[strings.LastIndexByte(address, '.')+1:])
	if end == "jpg" {
		end = "jpeg"
	}
	for _, format := range formats() {
		if format == end {
			return format
		}
	}
	return ""
}

// formats are the names of the formats by the type of a block and the media type.
func formats() map[string]string {
	return map[string]string{
		"image image/png": "png", "image image/jpeg": "jpeg", "image image/jpg": "jpeg", "image image/gif": "gif", "image image/webp": "webp",
		"file application/pdf": "pdf", "file text/csv": "csv", "file text/html": "html", "file text/plain": "txt", "file text/markdown": "md",
		"file application/msword": "doc", "file application/vnd.ms-excel": "xls",
		"file application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
		"file application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":       "xlsx",
		"video video/mp4": "mp4", "video video/quicktime": "mov", "video video/x-matroska": "mkv", "video video/webm": "webm",
		"video video/x-flv": "flv", "video video/mpeg": "mpeg", "video video/x-ms-wmv": "wmv", "video video/3gpp": "three_gp",
	}
}

// searchResult is a passage that the model cites by itself.
type searchResult struct {
	Source    string           `json:"source"`
	Title     string           `json:"title"`
	Content   []block          `json:"content"`
	Citations citationsEnabled `json:"citations"`
}

type citationsEnabled struct {
	Enabled bool `json:"enabled"`
}

// TakesPassages reports whether the passages of a request are sent as search results. Of the models of Bedrock,
// those Claude models have them that can reason, without a form of the answer.
func (p *protocol) TakesPassages(req model.Request) bool {
	known := p.Info.Known
	if known == nil || !strings.Contains(known.ID, "anthropic.") || !known.Reasoning.Reasons() || req.Schema != nil {
		return false
	}
	for name, raw := range p.Encoded {
		var members map[string]json.RawMessage
		if wire.Camel(name) != "outputConfig" || json.Unmarshal(raw, &members) != nil {
			continue
		}
		for member := range members {
			if wire.Camel(member) == "textFormat" {
				return false
			}
		}
	}
	return wire.IsCitable(req.Passages)
}

// passageBlock encodes a passage.
func passageBlock(text string) (block, error) {
	s, err := wire.ReadPassage(text)
	if err != nil {
		return block{}, err
	}
	source, title := wire.SearchResult(s)
	return block{Found: &searchResult{source, title, []block{textBlock(s.Text)}, citationsEnabled{true}}}, nil
}

package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// turn is a message of the protocol: everything that one side adds before the other
// side does.
type turn struct {
	Role    string `json:"role"` // user, assistant or system
	Content []part `json:"content"`
}

// The roles of turns.
const (
	userRole      = "user"
	assistantRole = "assistant"
	systemRole    = "system" // within a conversation; see wire.TurnRules.SystemWithin
)

// part is a content block of a turn; the fields of its type are set.
type part struct {
	Type      string          `json:"type"` // text, image, document, tool_use, tool_result, or that of raw
	Text      string          `json:"text,omitempty"`
	Source    *source         `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // of a tool_result: a string, or parts if it has media
	Cache     json.RawMessage `json:"cache_control,omitempty"`

	raw    json.RawMessage // the whole block, as the provider sent it; nil for the fields above
	source string          // of a search result: what citations name
}

// encodeTurns returns turns as JSON.
func encodeTurns(turns []turn) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, len(turns))
	for i := range turns {
		var b bytes.Buffer
		b.WriteString(`{"role":"` + turns[i].Role + `","content":`)
		separator := byte('[')
		for j := range turns[i].Content {
			b.WriteByte(separator)
			separator = ','
			if err := turns[i].Content[j].encode(&b); err != nil {
				return nil, err
			}
		}
		b.WriteString("]}")
		all[i] = b.Bytes()
	}
	return all, nil
}

// encode writes the fields, or the block of the provider, without spaces between tokens.
func (p *part) encode(b *bytes.Buffer) error {
	if p.raw != nil {
		return json.Compact(b, p.raw)
	}
	type fields part
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode((*fields)(p))
	b.Truncate(max(b.Len()-1, 0)) // without its line end
	return err
}

// MarshalJSON writes a part of a system message or of the result of a tool.
func (p part) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := p.encode(&b)
	return b.Bytes(), err
}

// source is the data or the address of an image or a document.
type source struct {
	Type      string `json:"type"` // base64, text or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// turnsOf merges adjacent messages of one side: the results of several calls must be in
// the turn that follows the calls. passageTools are the tools whose results are search results.
func turnsOf(messages []chat.Message, passageTools []string) ([]turn, error) {
	var turns []turn
	for _, m := range fromSummary(messages) {
		role := roleOf(m)
		parts, err := partsOf(m, passageTools)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 { // empty content is not allowed
			continue
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, parts...)
			continue
		}
		turns = append(turns, turn{Role: role, Content: parts})
	}
	return withoutMovedCitations(turns), nil
}

// roleOf returns the role of the turn of a message.
func roleOf(m chat.Message) string {
	switch wire.NormalizeRole(m.Role) {
	case chat.Assistant:
		return assistantRole
	case chat.System:
		return systemRole
	}
	return userRole
}

// fromSummary returns the messages from the last signed summary of the provider on: it must be
// the first block. A summary without a signature may follow what it replaces.
func fromSummary(messages []chat.Message) []chat.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		for j := len(messages[i].Blocks) - 1; j >= 0; j-- {
			item := messages[i].Blocks[j].Item
			if item == nil || item.Field != compactionType {
				continue
			}
			if summary, err := parseObject([]byte(item.JSON)); err == nil && summary.text("signature") != "" {
				kept := slices.Clone(messages[i:])
				kept[0].Blocks = kept[0].Blocks[j:]
				return kept
			}
		}
	}
	return messages
}

func partsOf(m chat.Message, passageTools []string) ([]part, error) {
	if wire.NormalizeRole(m.Role) == chat.Tool && m.ToolCallID != "" {
		result := part{Type: "tool_result", ToolUseID: wire.PlainID(m.ToolCallID)}
		if found := searchResults(m, passageTools); found != nil {
			result.Content = found
		} else {
			result.Content = resultOf(m)
		}
		return []part{result}, nil
	}
	var parts []part
	for _, b := range m.Blocks {
		switch {
		case b.Item != nil:
			parts = append(parts, itemParts(b)...)
		case b.Call != nil:
			parts = append(parts, callPart(*b.Call))
		default:
			p, err := partOf(b)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	return slices.DeleteFunc(parts, isBlank), nil
}

// isBlank reports whether a part is a text without content, which is rejected.
func isBlank(p part) bool { return p.Type == textType && strings.TrimSpace(p.Text) == "" }

// resultOf encodes the result of a tool: its text, or parts if it has media.
func resultOf(m chat.Message) any {
	var parts []part
	media := false
	for _, b := range m.Blocks {
		p, err := partOf(b)
		if err != nil {
			p = part{Type: "text", Text: wire.ResultNote(b)}
		}
		media = media || p.Type != "text" || err != nil
		if p.Type != "text" || strings.TrimSpace(p.Text) != "" {
			parts = append(parts, p)
		}
	}
	if text := m.Text(); !media && text != "" {
		return text
	}
	if len(parts) == 0 {
		return nil
	}
	return parts
}

// partOf encodes a block: text, an image, or a document: PDF or text.
func partOf(b chat.Block) (part, error) {
	from := &source{Type: "url", URL: b.Text}
	if b.Media() {
		from = &source{Type: "base64", MediaType: b.MimeType, Data: base64.StdEncoding.EncodeToString(b.Data)}
	}
	switch b.Type {
	case wire.PassageType:
		s, err := wire.ReadPassage(b.Text)
		if err != nil {
			return part{}, err
		}
		return searchResult(s), nil
	case "image":
		if b.Media() && from.MediaType == "" {
			from.MediaType = wire.ImageType(b.Data)
		}
		return part{Type: "image", Source: from}, nil
	case "file":
		if text, ok := wire.FileText(b); ok {
			return part{Type: "document", Source: &source{Type: "text", MediaType: "text/plain", Data: text}}, nil
		}
		if !b.Media() || b.MimeType == "application/pdf" {
			return part{Type: "document", Source: from}, nil
		}
		return part{}, wire.UnsupportedContent(b, "anthropic")
	case "audio", "video", "bytes":
		return part{}, wire.UnsupportedContent(b, "anthropic")
	}
	if b.Media() {
		return part{}, wire.UnsupportedContent(b, "anthropic")
	}
	return part{Type: "text", Text: b.Text}, nil
}

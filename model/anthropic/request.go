package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// turn is a message of the protocol: everything that one side adds before the other
// side does.
type turn struct {
	Role    string `json:"role"` // user or assistant
	Content []part `json:"content"`
}

// part is a content block of a turn; the fields of its type are set.
type part struct {
	Type      string          `json:"type"` // text, image, document, tool_use or tool_result
	Text      string          `json:"text,omitempty"`
	Source    *source         `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // of a tool_result: a string, or parts if it has media
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

// source is the data or the address of an image or a document.
type source struct {
	Type      string `json:"type"` // base64, text or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// function is a tool in Anthropic's format.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
}

// body encodes a request. Parameters that the document does not set are not sent,
// except for max_tokens, which is required.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields := map[string]any{"max_tokens": p.Info.MaxTokens}
	for name, raw := range p.Encoded {
		fields[name] = raw
	}
	system, rest := wire.Split(wire.WithAnswerNotes(req.Messages))
	turns, err := turnsOf(rest)
	if err != nil {
		return nil, err
	}
	fields["model"], fields["messages"] = p.Info.Name, turns
	if strings.TrimSpace(system) != "" {
		fields["system"] = system
	}
	if len(req.Tools) > 0 {
		fields["tools"] = functions(req.Tools)
	}
	if p.cache {
		markCache(fields, system, turns)
	}
	if req.Schema != nil {
		if err := requestFormat(fields, req.Schema); err != nil {
			return nil, err
		}
	}
	if req.Stream {
		fields["stream"] = true
	}
	return fields, nil
}

// requestFormat adds the schema of the answer to output_config, whose other fields the
// document may set, unless it sets a format itself.
func requestFormat(fields map[string]any, s *model.Schema) error {
	config := map[string]json.RawMessage{}
	if raw, ok := fields["output_config"].(json.RawMessage); ok {
		if err := json.Unmarshal(raw, &config); err != nil {
			return errors.New("inference_params: output_config must be a map")
		}
	}
	if _, set := config["format"]; set {
		return nil
	}
	if config == nil { // output_config is null
		config = map[string]json.RawMessage{}
	}
	raw, err := json.Marshal(map[string]any{"type": "json_schema", "schema": s.JSON})
	if err != nil {
		return err
	}
	config["format"] = raw
	fields["output_config"] = config
	return nil
}

// cacheControl marks the end of a part of the prompt that the provider caches.
type cacheControl struct {
	Type string `json:"type"`
}

// markCache marks the parts of a prompt that later calls begin with: the tools and the
// system message, which are the same in all calls of a step, and a conversation that goes
// on. The provider ignores markers of short prompts.
func markCache(fields map[string]any, system string, turns []turn) {
	mark := &cacheControl{"ephemeral"}
	if strings.TrimSpace(system) != "" {
		fields["system"] = []part{{Type: "text", Text: system, Cache: mark}}
	}
	tools, _ := fields["tools"].([]function)
	if len(tools) > 0 {
		tools[len(tools)-1].Cache = mark
	}
	if len(turns) > 1 || len(tools) > 0 && len(turns) > 0 {
		last := turns[len(turns)-1].Content
		last[len(last)-1].Cache = mark
	}
}

func functions(tools []model.Tool) []function {
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i] = function{Name: t.Name, Description: t.Description, InputSchema: t.Parameters}
	}
	return list
}

// turnsOf merges adjacent messages of one side: the results of several calls must be in
// the turn that follows the calls. The first turn must be the user's; a window that
// begins with an answer gets one that states this.
func turnsOf(messages []chat.Message) ([]turn, error) {
	var turns []turn
	for _, m := range messages {
		role := "user"
		if wire.NormalizeRole(m.Role) == chat.Assistant {
			role = "assistant"
		}
		parts, err := partsOf(m)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 { // empty content is not allowed
			continue
		}
		if len(turns) == 0 && role == "assistant" {
			turns = append(turns, turn{Role: "user", Content: []part{{Type: "text", Text: "(earlier messages are omitted)"}}})
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, parts...)
			continue
		}
		turns = append(turns, turn{Role: role, Content: parts})
	}
	return turns, nil
}

func partsOf(m chat.Message) ([]part, error) {
	if wire.NormalizeRole(m.Role) == chat.Tool && m.ToolCallID != "" {
		return []part{{Type: "tool_result", ToolUseID: wire.PlainID(m.ToolCallID), Content: resultOf(m)}}, nil
	}
	var parts []part
	for _, b := range m.Blocks {
		p, err := partOf(b)
		if err != nil {
			return nil, err
		}
		if p.Type != "text" || strings.TrimSpace(p.Text) != "" { // blank texts are rejected
			parts = append(parts, p)
		}
	}
	for _, call := range m.Calls() {
		parts = append(parts, part{Type: "tool_use", ID: wire.PlainID(call.ID), Name: call.Name, Input: wire.Arguments(call.Arguments)})
	}
	return parts, nil
}

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

package agui

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Message is a message of the conversation.
type Message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"` // a text, or a list of parts
	ToolCalls  []ToolCall      `json:"toolCalls"`
	ToolCallID string          `json:"toolCallId"`
	Error      string          `json:"error"` // of a tool
}

// ToolCall is a call in a message of the assistant.
type ToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Part is a part of a message.
type Part struct {
	Type   string  `json:"type"` // text, image, audio, video, document
	Text   string  `json:"text"`
	Source *Source `json:"source"`
}

// Source is the content of a file.
type Source struct {
	Type     string `json:"type"`  // data, url or file
	Value    string `json:"value"` // base64, an address, or a provider's handle
	MimeType string `json:"mimeType"`
}

// roles maps the roles of the protocol; those without a role here are not part of the
// conversation with a model.
var roles = map[string]chat.Role{"developer": chat.System, "system": chat.System, "user": chat.User, "assistant": chat.Assistant,
	"tool": chat.Tool, "activity": "", "reasoning": ""}

func (m *Message) check(pointer string) error {
	if _, ok := roles[m.Role]; !ok {
		return invalid(pointer+"/role", fmt.Sprintf("unknown role %q", m.Role))
	}
	return nil
}

// chat converts a message. The error is a *problem.Problem.
func (m *Message) chat(pointer string) (chat.Message, error) {
	out := chat.Message{ID: chat.NewID(), Role: roles[m.Role], Name: m.Name, ToolCallID: m.ToolCallID}
	var err error
	if out.Blocks, err = m.blocks(pointer + "/content"); err != nil {
		return out, err
	}
	if m.Role == "tool" && m.Error != "" {
		out.Blocks = append(out.Blocks, chat.Block{Type: "text", Text: "error: " + m.Error})
	}
	for _, c := range m.ToolCalls {
		out = out.With(chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out, nil
}

func (m *Message) blocks(pointer string) ([]chat.Block, error) {
	if isNone(m.Content) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []chat.Block{{Type: "text", Text: text}}, nil
	}
	var parts []Part
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil, invalid(pointer, "expected a text or a list of parts")
	}
	var blocks []chat.Block
	for i := range parts {
		b, err := parts[i].block(fmt.Sprintf("%s/%d", pointer, i))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}

func (p *Part) block(pointer string) (*chat.Block, error) {
	switch p.Type {
	case "text":
		return &chat.Block{Type: "text", Text: p.Text}, nil
	case "image", "audio", "video":
		return p.Source.block(p.Type, pointer+"/source")
	case "document":
		return p.Source.block("", pointer+"/source")
	}
	return nil, invalid(pointer+"/type", fmt.Sprintf("unknown type %q of a part", p.Type))
}

// block returns the block of a source. kind is image, audio or video, or empty for a document.
func (s *Source) block(kind, pointer string) (*chat.Block, error) {
	data, declared, err := s.content(pointer)
	if err != nil {
		return nil, err
	}
	b, err := mediafile.Block(kind, data, declared)
	if err != nil {
		return nil, invalid(pointer+"/value", err.Error())
	}
	return b, nil
}

// content returns the content of a source and its declared media type.
func (s *Source) content(pointer string) (data []byte, mediaType string, err error) {
	switch {
	case s == nil:
		return nil, "", invalid(pointer, "the source is missing")
	case s.Type == "data":
		if data, err = base64.StdEncoding.DecodeString(s.Value); err != nil {
			return nil, "", invalid(pointer+"/value", "it is not valid base64")
		}
		return data, s.MimeType, nil
	case s.Type == "url" && strings.HasPrefix(s.Value, "data:"):
		if data, mediaType, err = schema.DecodeDataURL(s.Value); err != nil {
			return nil, "", invalid(pointer+"/value", err.Error())
		}
		return data, cmp.Or(s.MimeType, mediaType), nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "attachment_not_allowed", "the server does not fetch files; send the content as a source of type data")
	p.Errors = []problem.Field{{Pointer: pointer, Detail: p.Detail}}
	return nil, "", p
}

// last returns the index of the newest message of the conversation, -1 if there is none.
func (in *Input) last() int {
	for i := len(in.Messages) - 1; i >= 0; i-- {
		if roles[in.Messages[i].Role] != "" {
			return i
		}
	}
	return -1
}

// Conversation converts the messages: the newest, which must be the user's, and those
// before it. The error is a *problem.Problem.
func (in *Input) Conversation() (newest chat.Message, earlier []chat.Message, err error) {
	last := in.last()
	if last < 0 {
		return newest, nil, invalid("/messages", "there is no message")
	}
	if in.Messages[last].Role != "user" {
		return newest, nil, invalid(fmt.Sprintf("/messages/%d/role", last), "the last message must be the user's")
	}
	for i := range in.Messages[:last+1] {
		if roles[in.Messages[i].Role] == "" {
			continue
		}
		m, err := in.Messages[i].chat(fmt.Sprintf("/messages/%d", i))
		switch {
		case err != nil:
			return newest, nil, err
		case i == last && len(m.Blocks) == 0:
			return newest, nil, invalid(fmt.Sprintf("/messages/%d/content", i), "the message has no content")
		case i == last:
			newest = m
		case len(m.Blocks) > 0 || m.Role == chat.Tool:
			earlier = append(earlier, m)
		}
	}
	return newest, earlier, nil
}

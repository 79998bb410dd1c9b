package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/model"
)

// reserved are the parts of a request that qtype itself fills.
func reserved() []string { return []string{"messages", "model", "n", "stream", "tools"} }

// encodeParams writes inference parameters as JSON, once.
func encodeParams(params map[string]any) (map[string]json.RawMessage, error) {
	encoded := make(map[string]json.RawMessage, len(params))
	for name, value := range params {
		if slices.Contains(reserved(), name) {
			return nil, fmt.Errorf("inference_params must not hold %q: qtype sets it", name)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("inference_params: %s cannot be written as JSON", name)
		}
		encoded[name] = raw
	}
	return encoded, nil
}

// function is a tool as OpenAI writes it.
type function struct {
	Type     string `json:"type"` // always function
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

// body writes a request. Parameters that the document does not set are not
// sent: their defaults are the server's to choose.
func (c *Client) body(req model.Request) ([]byte, error) {
	fields := make(map[string]any, len(c.params)+5)
	for name, raw := range c.params {
		fields[name] = raw
	}
	fields["model"] = c.config.Info.Name
	messages := make([]json.RawMessage, len(req.Messages))
	for i, m := range req.Messages {
		if err := sendable(m); err != nil {
			return nil, err
		}
		m.Name = plainName(m.Name)
		messages[i] = chat.OpenAI(m)
	}
	fields["messages"] = messages
	if len(req.Tools) > 0 {
		fields["tools"] = functions(req.Tools)
	}
	if req.Stream {
		fields["stream"] = true
		if _, set := c.params["stream_options"]; !set {
			fields["stream_options"] = map[string]bool{"include_usage": true}
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(fields)
	return buf.Bytes(), err
}

func functions(tools []model.Tool) []function {
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i].Type = "function"
		list[i].Function.Name, list[i].Function.Description, list[i].Function.Parameters = t.Name, t.Description, t.Parameters
	}
	return list
}

// sendable tells whether the protocol can carry every part of a message.
func sendable(m chat.Message) error {
	for _, b := range m.Blocks {
		switch {
		case b.Type == "audio" && !b.Media():
			return fmt.Errorf("audio must be given as bytes, not as an address")
		case b.Type == "audio" && b.MimeType != "" && !slices.Contains(soundTypes(), b.MimeType):
			return fmt.Errorf("audio of type %s cannot be sent, only wav and mp3", b.MimeType)
		}
	}
	return nil
}

// soundTypes are the media types that OpenAI takes.
func soundTypes() []string {
	return []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mp3", "audio/mpeg"}
}

// plainName makes of a speaker's name one that OpenAI accepts: at most 64
// characters without blanks and < | \ / >.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`<|\/>`, r) {
			return '_'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > 64 {
		name = string(runes[:64])
	}
	return name
}

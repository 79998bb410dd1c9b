package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// body encodes a request. Parameters that the document does not set are not sent: the
// server has its own defaults.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields := make(map[string]any, len(p.Encoded)+5)
	for name, raw := range p.Encoded {
		fields[name] = raw
	}
	fields["model"] = p.model
	given := wire.WithAnswerNotes(req.Messages)
	if !p.mistral { // whose tool messages may have images
		given = withToolMedia(given)
	}
	messages := make([]json.RawMessage, len(given))
	for i, m := range given {
		m = withFileTexts(m)
		m.Name = plainName(m.Name)
		if wire.NormalizeRole(m.Role) == chat.Tool { // the schema has no names of tools
			m = withMediaNotes(m)
			m.Name = ""
		}
		if err := supportedContent(m); err != nil {
			return nil, err
		}
		var err error
		if messages[i], err = p.message(m); err != nil {
			return nil, err
		}
	}
	fields["messages"] = messages
	if len(req.Tools) > 0 {
		fields["tools"] = wire.Functions(req.Tools)
	}
	if _, set := fields["response_format"]; req.Schema != nil && !set {
		fields["response_format"] = responseFormat(req.Schema)
	}
	if req.Stream {
		fields["stream"] = true
		if _, set := p.Encoded["stream_options"]; !set && !p.mistral {
			fields["stream_options"] = map[string]bool{"include_usage": true}
		}
	}
	return fields, nil
}

// message encodes a message.
func (p *protocol) message(m chat.Message) (json.RawMessage, error) {
	if p.mistral {
		return mistralMessage(forMistral(m))
	}
	return chat.OpenAI(m), nil
}

// responseFormat requests the form of an answer. The model is bound to the schema where
// the schema has no optional properties, which strict does not allow.
func responseFormat(s *model.Schema) map[string]any {
	if s.Form == model.SchemaJSON {
		return map[string]any{"type": "json_object"}
	}
	schema := map[string]any{"name": s.Name, "schema": s.JSON}
	var parsed any
	if json.Unmarshal(s.JSON, &parsed) == nil && isStrict(parsed) {
		schema["strict"] = true
	}
	return map[string]any{"type": "json_schema", "json_schema": schema}
}

// isStrict reports whether all objects of a schema require all of their properties and
// allow no others, and whether it has only keywords that OpenAI accepts with strict.
func isStrict(schema any) bool {
	switch s := schema.(type) {
	case []any:
		return !slices.ContainsFunc(s, func(v any) bool { return !isStrict(v) })
	case map[string]any:
		if s["type"] == "object" {
			properties, _ := s["properties"].(map[string]any)
			required, _ := s["required"].([]any)
			if s["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for name, v := range s {
			switch name {
			case "properties", "$defs":
				named, _ := v.(map[string]any)
				for _, inner := range named {
					if !isStrict(inner) {
						return false
					}
				}
			case "items", "anyOf":
				if !isStrict(v) {
					return false
				}
			case "type", "required", "additionalProperties", "description", "enum", "$ref", "format", "minimum", "maximum":
			default:
				return false
			}
		}
	}
	return true
}

// supportedContent returns an error if the protocol cannot carry a part of the message.
func supportedContent(m chat.Message) error {
	for _, b := range m.Blocks {
		switch {
		case b.Type == "audio" && !b.Media():
			return fmt.Errorf("audio must be bytes, not a URL")
		case b.Type == "audio" && b.MimeType != "" && !slices.Contains(soundTypes(), b.MimeType):
			return fmt.Errorf("audio of type %s cannot be sent, only wav and mp3", b.MimeType)
		}
	}
	return nil
}

// soundTypes maps the media types that OpenAI accepts to its names of them.
func soundTypes() []string {
	return []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mp3", "audio/mpeg"}
}

// plainName converts a participant's name to one that OpenAI accepts: at most 64
// characters without spaces and < | \ / >.
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

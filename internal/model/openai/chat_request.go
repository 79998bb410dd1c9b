package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// body encodes a request. Parameters that the document does not set are not sent: the
// server has its own defaults.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields := p.params()
	messages, err := p.messages(req.Messages)
	if err != nil {
		return nil, err
	}
	fields["model"], fields["messages"] = p.model, messages
	if err := p.setTools(fields, req); err != nil {
		return nil, err
	}
	if _, set := fields["tool_choice"]; req.MustCall && !set {
		fields["tool_choice"] = "required"
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

// params returns the parameters of the document. OpenAI has another name of max_tokens for models
// that reason, with the same meaning; other servers get the name of the document.
func (p *protocol) params() map[string]any {
	fields := make(map[string]any, len(p.Encoded)+5)
	for name, raw := range p.Encoded {
		fields[name] = raw
	}
	if limit, set := fields["max_tokens"]; set && p.Own && p.Info.Known.Rejects("max_tokens", catalogue.ChatCompletions) {
		delete(fields, "max_tokens")
		if _, both := fields["max_completion_tokens"]; !both {
			fields["max_completion_tokens"] = limit
		}
	}
	if _, set := fields["prompt_cache_options"]; !set && p.NoCache && hasBreakpoints(p.Server) {
		fields["prompt_cache_options"] = explicitCache()
	}
	return fields
}

// messages encodes a conversation.
func (p *protocol) messages(given []chat.Message) ([]json.RawMessage, error) {
	given = wire.WithAnswerNotes(p.returns.apply(given))
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
	return messages, nil
}

// message encodes a message.
func (p *protocol) message(m chat.Message) (json.RawMessage, error) {
	raw, err := chat.OpenAI(m), error(nil)
	if p.mistral {
		m = forMistral(m)
		raw, err = mistralMessage(m)
	}
	hasItems := slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return b.Item != nil })
	required := m.HasCalls() && p.Info.Known.Requires(requiredInCall)
	marked := m.Role == chat.System && marksSystem(p.Server, m.Text())
	signed := m.HasCalls() && p.Info.Known.Requires(signatureInCall) && strings.HasSuffix(p.Base.Hostname(), ".googleapis.com")
	if err != nil || !hasItems && !required && !marked && !signed {
		return raw, err
	}
	var fields object
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if marked {
		fields["content"] = encode([]cachedText{{"text", m.Text(), explicitCache()}})
	}
	returnedFields(fields, &m)
	if signed {
		signFirstCall(fields)
	}
	if _, set := fields[requiredInCall]; required && !set {
		fields[requiredInCall] = encode(noReasoning)
	}
	return encode(fields), nil
}

// noReasoning is the reasoning of calls that came without any, as of another model. DeepSeek and
// Moonshot refuse a call without reasoning; Moonshot, and older models of DeepSeek, an empty text.
// Both accept a space (theopenco/llmgateway#2093, Wei-Shaw/sub2api#7313).
const noReasoning = " "

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

// customTool is a tool that gets a text in a grammar.
type customTool struct {
	Type   string `json:"type"` // always custom
	Custom struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Format      struct {
			Type    string        `json:"type"` // always grammar
			Grammar grammarOfChat `json:"grammar"`
		} `json:"format"`
	} `json:"custom"`
}

// grammarOfChat is a grammar in the form of chat completions.
type grammarOfChat struct {
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// setTools declares tools. The protocol has no search of tools, so that deferred ones are declared
// as all others. Only OpenAI's own service has grammars; elsewhere the tool is a function.
func (p *protocol) setTools(fields map[string]any, req model.Request) error {
	var list []json.RawMessage
	for _, t := range req.Tools {
		switch {
		case t.Hosted == "web_search" && !p.mistral:
			if _, set := fields["web_search_options"]; !set {
				fields["web_search_options"] = settingsOf(t)
			}
		case t.Hosted != "":
			return fmt.Errorf("tool %s: chat completions have no hosted tool %s", t.Name, t.Hosted)
		case t.Grammar != nil && p.Own && !p.mistral:
			list = append(list, encode(newCustomTool(t)))
		default:
			f := wire.Functions([]model.Tool{t})[0]
			f.Function.Strict = t.Strict && isStrictSchema(t.Parameters)
			list = append(list, encode(f))
		}
	}
	if len(list) > 0 {
		fields["tools"] = list
		if req.NoCalls {
			fields["tool_choice"] = "none"
		}
	}
	return nil
}

func newCustomTool(t model.Tool) (c customTool) {
	c.Type, c.Custom.Name, c.Custom.Description = "custom", t.Name, t.Description
	c.Custom.Format.Type = "grammar"
	c.Custom.Format.Grammar = grammarOfChat{t.Grammar.Syntax, t.Grammar.Definition}
	return c
}

// settingsOf returns the settings of a hosted tool, an empty object for none.
func settingsOf(t model.Tool) json.RawMessage {
	if len(t.Settings) == 0 {
		return json.RawMessage("{}")
	}
	return t.Settings
}

// defaultTextProperty is the property of the arguments that has the text of a call with a grammar.
const defaultTextProperty = "input"

// textProperties returns the properties that get the texts of calls, by the names of the tools with
// grammars: the only property of a tool's parameters.
func textProperties(tools []model.Tool) map[string]string {
	properties := map[string]string{}
	for _, t := range tools {
		if t.Grammar == nil {
			continue
		}
		var schema struct {
			Properties object `json:"properties"`
		}
		properties[t.Name] = defaultTextProperty
		if json.Unmarshal(t.Parameters, &schema) == nil && len(schema.Properties) == 1 {
			for name := range schema.Properties {
				properties[t.Name] = name
			}
		}
	}
	return properties
}

// textArguments returns the arguments of a call with a text.
func textArguments(property, text string) string {
	if property == "" {
		property = defaultTextProperty
	}
	return string(encode(map[string]string{property: text}))
}

// argumentsText returns the text of textArguments. Arguments in another form are the text.
func argumentsText(arguments string) string {
	var texts map[string]string
	if json.Unmarshal([]byte(arguments), &texts) == nil && len(texts) == 1 {
		for _, text := range texts {
			return text
		}
	}
	return arguments
}

// responseFormat requests the form of an answer. The model is bound to the schema where
// the schema has no optional properties, which strict does not allow.
func responseFormat(s *model.Schema) map[string]any {
	if s.Form == model.SchemaJSON {
		return map[string]any{"type": "json_object"}
	}
	schema := map[string]any{"name": s.Name, "schema": s.JSON}
	if isStrictSchema(s.JSON) {
		schema["strict"] = true
	}
	return map[string]any{"type": "json_schema", "json_schema": schema}
}

// isStrictSchema reports whether OpenAI accepts a schema with strict.
func isStrictSchema(raw json.RawMessage) bool {
	var parsed any
	return json.Unmarshal(raw, &parsed) == nil && isStrict(parsed)
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

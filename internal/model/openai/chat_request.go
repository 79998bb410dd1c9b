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

package langchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// messages converts a conversation to langchaingo's types: one text for each message,
// and images if the client carries them.
func (m *Model) messages(msgs []chat.Message) ([]llms.MessageContent, error) {
	list := make([]llms.MessageContent, 0, len(msgs))
	for _, msg := range msgs {
		if msg.HasCalls() || msg.Role == chat.Tool || msg.Role == chat.Function {
			return nil, fmt.Errorf("%s cannot carry tool calls and their results", m.config.Info.Provider)
		}
		parts := []llms.ContentPart{llms.TextContent{Text: msg.Text()}}
		for _, b := range msg.Blocks {
			switch {
			case b.Type == "image" && b.Media() && m.client.images:
				parts = append(parts, llms.BinaryContent{MIMEType: b.MimeType, Data: b.Data})
			case b.Media() || b.Type == "image" || b.Type == "audio" || b.Type == "video":
				return nil, fmt.Errorf("%s cannot carry content of type %s", m.config.Info.Provider, b.Type)
			}
		}
		list = append(list, llms.MessageContent{Role: role(msg.Role), Parts: parts})
	}
	if len(list) == 0 {
		return nil, errors.New("nothing to send")
	}
	if m.client.singlePrompt && (len(msgs) > 1 || msgs[0].Role != chat.User) {
		return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, transcript(msgs))}, nil
	}
	return list, nil
}

// transcript writes a conversation as one text for the model to continue.
func transcript(msgs []chat.Message) string {
	var b strings.Builder
	for _, msg := range msgs {
		name := "User"
		switch role(msg.Role) {
		case llms.ChatMessageTypeSystem:
			name = "System"
		case llms.ChatMessageTypeAI:
			name = "Assistant"
		}
		fmt.Fprintf(&b, "%s: %s\n\n", name, msg.Text())
	}
	return b.String() + "Assistant:"
}

func role(r chat.Role) llms.ChatMessageType {
	switch r {
	case chat.System, chat.Developer:
		return llms.ChatMessageTypeSystem
	case chat.Assistant, chat.Chatbot, chat.Model:
		return llms.ChatMessageTypeAI
	}
	return llms.ChatMessageTypeHuman
}

// options returns the document's parameters for a client that takes no transport; for
// the others the transport sets them.
func (m *Model) options() []llms.CallOption {
	if !m.client.ignoresContext {
		return nil
	}
	var opts []llms.CallOption
	if n, ok := number(m.config.Params["temperature"]); ok {
		opts = append(opts, llms.WithTemperature(n))
	}
	if n, ok := number(m.config.Params["max_tokens"]); ok {
		opts = append(opts, llms.WithMaxTokens(int(n)))
	}
	if n, ok := number(m.config.Params["random_seed"]); ok {
		opts = append(opts, llms.WithSeed(int(n)))
	}
	return opts
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// usage reads the token counts, which each client names differently.
func usage(info map[string]any) model.Usage {
	raw, err := json.Marshal(info)
	if err != nil {
		return model.Usage{}
	}
	var counts struct {
		PromptTokens     int
		CompletionTokens int
		Usage            struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(raw, &counts) != nil {
		return model.Usage{}
	}
	return model.Usage{Input: counts.PromptTokens + counts.Usage.Prompt, Output: counts.CompletionTokens + counts.Usage.Completion}
}

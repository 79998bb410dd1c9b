package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// NormalizeRole is who says a message, as all providers know it: system, user,
// assistant or tool.
func NormalizeRole(r chat.Role) chat.Role {
	switch r {
	case chat.Developer:
		return chat.System
	case chat.Chatbot, chat.Model:
		return chat.Assistant
	case chat.Function:
		return chat.Tool
	}
	return r
}

// Split parts the system's messages from the conversation, for providers that
// want them beside it. Their texts are joined by a blank line.
func Split(messages []chat.Message) (system string, rest []chat.Message) {
	var texts []string
	for _, m := range messages {
		if NormalizeRole(m.Role) == chat.System {
			texts = append(texts, m.Text())
			continue
		}
		rest = append(rest, m)
	}
	return strings.Join(texts, "\n\n"), rest
}

// Arguments are a tool call's arguments as an object, for providers that take
// no text there. What a model wrote that is none is put into one.
func Arguments(text string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	raw, _ := json.Marshal(map[string]string{"arguments": text}) // a text always encodes
	return raw
}

// UnsupportedContent says that a provider has no place for a kind of content.
func UnsupportedContent(b chat.Block, provider string) error {
	if b.Media() && b.MimeType != "" {
		return fmt.Errorf("%s of type %s cannot be sent to %s", b.Type, b.MimeType, provider)
	}
	return fmt.Errorf("%s cannot be sent to %s", b.Type, provider)
}

// EmptySchema is the schema of a tool without arguments, for providers that want one.
const EmptySchema = `{"type":"object","properties":{}}`

// ImageType is the media type of a picture by its first bytes; that of PNG
// where they are no known ones, for providers want to be told.
func ImageType(data []byte) string {
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		return kind
	}
	return "image/png"
}

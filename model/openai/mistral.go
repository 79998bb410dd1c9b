package openai

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// forMistral changes a message to one that Mistral accepts: without a participant's name,
// without roles that Mistral does not have, with ids of calls in Mistral's format.
func forMistral(m chat.Message) chat.Message {
	m.Name = ""
	if m.Role == chat.Developer {
		m.Role = chat.System
	}
	if m.ToolCallID != "" {
		m.ToolCallID = mistralID(m.ToolCallID)
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		m.ToolCalls[i].ID = mistralID(m.ToolCalls[i].ID)
	}
	return m
}

// mistralID returns the id of a call in Mistral's format, nine letters and digits: the id
// itself if it has the format, else one that is derived from it.
func mistralID(id string) string {
	const alphabet, size = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 9
	plain := func(r rune) bool { return !strings.ContainsRune(alphabet, r) }
	if len(id) == size && !strings.ContainsFunc(id, plain) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	out := make([]byte, size)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}

package openai

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// forMistral makes of a message one that Mistral accepts: without a speaker's
// name, a role that it does not know, or a call's id that is not its own way of
// writing one.
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

// mistralID is a call's id as Mistral wants it, nine letters and digits: as it
// is where it is one, else always the same one for the same id.
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

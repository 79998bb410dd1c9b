package openai

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	return m.MapCalls(func(c chat.ToolCall) chat.ToolCall {
		c.ID = mistralID(c.ID)
		return c
	})
}

// mistralPart is a part of a message's content whose form is Mistral's own.
type mistralPart struct {
	Type     string `json:"type"`
	Sound    string `json:"input_audio,omitempty"` // base64
	Document string `json:"document_url,omitempty"`
}

// mistralMessage encodes a message of forMistral. Sounds are base64 without a format, and
// documents are addresses, which may have the data.
func mistralMessage(m chat.Message) (json.RawMessage, error) {
	raw := chat.OpenAI(m)
	own := func(b chat.Block) bool { return b.Type == "audio" || b.Type == "file" || b.Type == "bytes" }
	if !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return own(b) || b.Type == "video" }) {
		return raw, nil
	}
	var message map[string]json.RawMessage
	var content []json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &message), json.Unmarshal(message["content"], &content)); err != nil {
		return nil, err
	}
	for i, b := range m.Blocks {
		if b.Type == "video" {
			return nil, errors.New("videos cannot be sent")
		}
		if !own(b) {
			continue
		}
		part, err := mistralMedia(b, content[i])
		if err != nil {
			return nil, err
		}
		content[i] = part
	}
	var err error
	if message["content"], err = json.Marshal(content); err != nil {
		return nil, err
	}
	return json.Marshal(message)
}

// mistralMedia converts a part from OpenAI's form. A file is a PDF document or its address.
func mistralMedia(b chat.Block, part json.RawMessage) (json.RawMessage, error) {
	var given struct {
		Audio struct {
			Data string `json:"data"`
		} `json:"input_audio"`
		File struct {
			Data string `json:"file_data"`
		} `json:"file"`
	}
	if err := json.Unmarshal(part, &given); err != nil {
		return nil, err
	}
	switch {
	case b.Type == "audio":
		return json.Marshal(mistralPart{Type: "input_audio", Sound: given.Audio.Data})
	case given.File.Data != "":
		return json.Marshal(mistralPart{Type: "document_url", Document: given.File.Data})
	}
	return json.Marshal(mistralPart{Type: "document_url", Document: b.Text})
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

// Package chat is the message: what users, models and tools say to each other.
// Memories keep messages, models take and give them, and a variable of type
// ChatMessage holds one. It knows two written forms, the language's own (role
// and blocks) and OpenAI's (role and content), and turns each into the other.
//
// A Message is a value; code that receives one never changes its slices.
package chat

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
)

// Role tells who speaks.
type Role string

// The roles of reference language.md 7.3.
const (
	Assistant Role = "assistant"
	Chatbot   Role = "chatbot"
	Developer Role = "developer"
	Function  Role = "function"
	Model     Role = "model"
	System    Role = "system"
	Tool      Role = "tool"
	User      Role = "user"
)

// Roles lists every role, in alphabetical order.
func Roles() []Role {
	return []Role{Assistant, Chatbot, Developer, Function, Model, System, Tool, User}
}

// Block is one piece of a message's content.
type Block struct {
	Type     string // a primitive type name: text, image, audio, video, file, bytes, citation_url, …
	Text     string // the content of a textual block; JSON text for citations; the address of media that is not held here
	Data     []byte // the content of a media block
	MimeType string // empty where unknown
}

// ToolCall is a model's request to run one tool.
type ToolCall struct {
	ID        string // the provider's id; answers name it
	Name      string // the tool's name
	Arguments string // JSON text, exactly as the model wrote it
}

// Message is one utterance.
type Message struct {
	ID         string     // unique; the same message handed from step to step keeps it
	Role       Role       // who speaks
	Name       string     // the speaker's name, mostly empty
	Blocks     []Block    // what is said
	ToolCalls  []ToolCall // on an assistant's message: what it asks for
	ToolCallID string     // on a tool's message: the call that it answers
}

// Text makes a message of one text block, with a fresh id.
func Text(role Role, text string) Message {
	return Message{ID: NewID(), Role: role, Blocks: []Block{{Type: "text", Text: text}}}
}

// Text is the message's textual blocks joined by line ends.
func (m Message) Text() string {
	if len(m.Blocks) == 1 && !m.Blocks[0].Media() && !mediaType(m.Blocks[0].Type) {
		return m.Blocks[0].Text
	}
	var parts []string
	for _, b := range m.Blocks {
		if !b.Media() && !mediaType(b.Type) && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Media tells whether the block carries bytes rather than text.
func (b Block) Media() bool { return b.Data != nil }

// NewID is a fresh message id: 128 random bits in hexadecimal. They come from
// the runtime's ChaCha8, which is seeded by the system: an id is no secret, and
// one is made for every message.
func NewID() string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	var text [2 * len(b)]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// Package chat defines the messages between users, models and tools. Memories store
// them, models receive and return them, and variables of type ChatMessage contain
// one. The package converts between two JSON forms: that of the language (role and
// blocks) and that of OpenAI (role and content).
//
// A Message is a value; code that receives one must not change its slices.
package chat

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Role is the sender of a message.
type Role string

// The roles.
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

// Roles returns all roles in alphabetical order.
func Roles() []Role {
	return []Role{Assistant, Chatbot, Developer, Function, Model, System, Tool, User}
}

// The types of the blocks that only models make. Values of callers cannot have them.
const (
	ReasoningType  = "reasoning"  // the model's reasoning
	CommentaryType = "commentary" // what the model writes before its answer, such as "I look it up."
	CallType       = "tool_call"  // a call of a tool, which is in Block.Call
	ItemType       = "item"       // nothing but a provider's item, which is in Block.Item
)

// Block is a part of a message. The blocks of a message have the order in which the sender made them.
type Block struct {
	Type     string    // a primitive type (text, image, audio, video, file, bytes, citation_url, …) or a type of a model's block
	Text     string    // text; JSON text of citations; URL of media without Data
	Data     []byte    // content of media
	MimeType string    // empty if unknown
	Call     *ToolCall // of a block of CallType, else nil
	Item     *Item     // what the provider sent with the block and wants back; nil for none
}

// Item is what a provider sent with a block, or in place of one, and wants back unchanged: a
// signature, encrypted reasoning, a result of the provider's own tool. Only the client of the
// provider knows its meaning. It is sent only to the Origin of its message.
type Item struct {
	Field string // the provider's name of it: the field or the type in the provider's protocol
	JSON  string // its JSON, byte for byte; empty if the text of the block is the whole of it
}

// Origin identifies what made a message with items.
type Origin struct {
	API    string // the protocol, such as responses
	Server string // the address of the server, without credentials
	Model  string // the provider's name of the model
	Prefix string // digest of the request that the reasoning is bound to; empty for a model that binds none
}

// SentTo reports whether items of the origin can be sent to another one: only to itself.
func (o *Origin) SentTo(to *Origin) bool {
	return o != nil && o.API == to.API && o.Server == to.Server && o.Model == to.Model
}

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID        string // assigned by the provider; the tool's message refers to it
	Name      string // name of the tool
	Arguments string // JSON text, verbatim
}

// Message is a message of a conversation.
type Message struct {
	ID         string  // unique; stays the same when steps pass the message on
	Role       Role    // the sender
	Name       string  // name of the sender, usually empty
	Blocks     []Block // the content
	ToolCallID string  // of a tool's message: the call that it answers
	Context    string  // of a stored question: what a memory sent before its text and sends again; see AsSent
	Stopped    bool    // of an answer: its user stopped it, so that it may have no end
	Origin     *Origin // what made the items of the blocks; nil without items. It is shared and must not be changed
}

// Text returns a message of one text block, with a new id.
func Text(role Role, text string) Message {
	return Message{ID: NewID(), Role: role, Blocks: []Block{{Type: "text", Text: text}}}
}

// TextsOf returns the texts of the messages of a role.
func TextsOf(role Role, messages []Message) []string {
	var texts []string
	for i := range messages {
		if messages[i].Role == role {
			texts = append(texts, messages[i].Text())
		}
	}
	return texts
}

// SplitSystem returns the texts of the system messages of a conversation, separated by empty lines,
// and its other messages.
func SplitSystem(messages []Message) (text string, others []Message) {
	others = slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return m.Role == System })
	return strings.Join(TextsOf(System, messages), "\n\n"), others
}

// TextSeparator separates the texts of the blocks of a message.
const TextSeparator = "\n"

// Text returns the text blocks of the message joined by TextSeparator, without the reasoning and
// the commentary of a model. Citations are left out, unless the message has nothing else.
func (m Message) Text() string {
	if len(m.Blocks) == 1 && m.Blocks[0].IsText() {
		return m.Blocks[0].Text
	}
	var parts []string
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.IsText() && !b.IsCitation() && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, TextSeparator)
}

// Written returns what its author wrote in the message: Text without the texts of attached files, which
// have a media type.
func (m Message) Written() string {
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b Block) bool { return b.IsText() && b.MimeType != "" })
	return m.Text()
}

// IsText reports whether the block is a text that belongs to the content of the message.
func (b *Block) IsText() bool { return b.Data == nil && !mediaType(b.Type) && !b.IsModels() }

// IsModels reports whether the type of the block is one that only models make.
func (b *Block) IsModels() bool {
	switch b.Type {
	case ReasoningType, CommentaryType, CallType, ItemType:
		return true
	}
	return false
}

// Media reports whether the block has bytes rather than text.
func (b Block) Media() bool { return b.Data != nil }

// IsCitation reports whether the block is a source that the message cites.
func (b Block) IsCitation() bool { return b.Type == "citation_url" || b.Type == "citation_document" }

// NewID returns a new message id in hexadecimal: the time in milliseconds and 80 random
// bits. The messages of a session are then neighbors in an index of ids, which otherwise is
// the main cost of deleting a long one. The random bits come from the ChaCha8 generator of
// the Go runtime, which is fast and seeded by the system. An id is not a secret.
func NewID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16|rand.Uint64()>>48)
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	var text [2 * len(b)]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// MemoryMimeType is the MimeType of a text block that a memory inserts before a
// user's text: variables and earlier messages for the model. It is sent like any
// other text.
const MemoryMimeType = "text/x-remembered"

// TextWithoutMemory returns the text of a message without the blocks that a memory
// inserted.
func (m Message) TextWithoutMemory() string {
	remembered := func(b Block) bool { return b.MimeType == MemoryMimeType }
	if !slices.ContainsFunc(m.Blocks, remembered) {
		return m.Text()
	}
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), remembered)
	return m.Text()
}

// AsSent returns the message as a model receives it: its context is a block before the others.
func (m Message) AsSent() Message {
	if m.Context == "" {
		return m
	}
	blocks := make([]Block, 0, len(m.Blocks)+1)
	blocks = append(blocks, Block{Type: "text", Text: m.Context, MimeType: MemoryMimeType})
	m.Blocks, m.Context = append(blocks, m.Blocks...), ""
	return m
}

// MissingResult is the text of the result that Balance adds for a tool call without one.
const MissingResult = "error: the result of this call is missing in the conversation"

// Balance returns messages in which the results of tool calls directly follow their call,
// as providers require: a call without a result gets MissingResult, a result without a
// call that precedes it is left out, and a system message between them follows the
// results. repairs counts these changes; without any, out is msgs. The tokens of added
// results are about those of a short message.
func Balance(msgs []Message) (out []Message, repairs int) {
	if !slices.ContainsFunc(msgs, usesTools) {
		return msgs, 0
	}
	b := balancer{out: make([]Message, 0, len(msgs))}
	for i := range msgs {
		b.add(&msgs[i])
	}
	b.close()
	if b.repairs == 0 {
		return msgs, 0
	}
	return b.out, b.repairs
}

func usesTools(m Message) bool { return m.HasCalls() || isResult(&m) }

func isResult(m *Message) bool { return m.Role == Tool || m.Role == Function }

// balancer builds balanced messages.
type balancer struct {
	out     []Message
	open    []ToolCall // calls of the newest message that have no result yet
	held    []Message  // system messages that follow the results
	repairs int
}

func (b *balancer) add(m *Message) {
	switch {
	case isResult(m):
		answered := slices.IndexFunc(b.open, func(c ToolCall) bool {
			return c.ID == m.ToolCallID || m.ToolCallID == "" && c.Name == m.Name
		})
		if answered < 0 {
			b.repairs++
			return
		}
		b.open = slices.Delete(b.open, answered, answered+1)
		b.out = append(b.out, *m)
	case m.Role == System && len(b.open) > 0:
		b.held = append(b.held, *m)
		b.repairs++
	default:
		b.close()
		b.out = append(b.out, *m)
		b.open = m.appendCalls(b.open)
	}
}

// close adds the results that are missing, and what follows them.
func (b *balancer) close() {
	for _, c := range b.open {
		b.out = append(b.out, Message{ID: "missing-" + c.ID, Role: Tool, Name: c.Name, ToolCallID: c.ID, Blocks: []Block{{Type: "text", Text: MissingResult}}})
		b.repairs++
	}
	b.open = b.open[:0]
	b.out = append(b.out, b.held...)
	b.held = nil
}

// Package prefix compares the requests of a conversation: how much of one a provider's cache has
// after the request before, and why the rest differs. Reasoning that is bound to the prefix is
// valid only as far.
//
// A request is a list of parts, in the order in which the provider reads them. Two requests share
// the first parts that are equal.
package prefix

import (
	"github.com/cespare/xxhash/v2"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Kind is what a part of a request is. A part of the system message that a context block adds has
// the kind of the block.
type Kind string

// The kinds of parts.
const (
	System  Kind = "system"  // the system message
	Context Kind = "context" // the context that is sent before a question
	Message Kind = "message" // a message
)

// Form is the form in which a message is sent.
type Form uint8

// The forms of messages.
const (
	Whole     Form = iota // as it is stored
	Shortened             // a tool result in its short form
	Imageless             // with captions in place of its images
)

// Part is a part of a request.
type Part struct {
	Kind   Kind
	ID     string // of a message, or of the question of a context; empty after Decode
	Seq    int64  // its position in the history; 0 if it is not stored yet, or for the system message
	Form   Form   // of a message
	Tokens int    // its size
	Content
}

// Parts are the parts of a request.
type Parts []Part

// Content identifies what a part has.
type Content struct {
	Bytes int    // of texts, calls and media
	sum   uint32 // checksum
}

// ContentOf returns the content of a message, or of a part of one, that has blocks.
func ContentOf(m *chat.Message, blocks []chat.Block) Content {
	s := newSummer()
	s.addName(string(m.Role))
	s.addName(m.Name)
	s.addName(m.ToolCallID)
	for i := range blocks {
		s.addBlock(&blocks[i])
	}
	return s.content()
}

// Of returns the part of a message, or of a part of one: its content is that of blocks.
func Of(kind Kind, m *chat.Message, blocks []chat.Block) Part {
	return Part{Kind: kind, ID: m.ID, Content: ContentOf(m, blocks)}
}

// OfText returns a part of the system message.
func OfText(kind Kind, text string, tokens int) Part {
	s := newSummer()
	s.add(text)
	return Part{Kind: kind, Tokens: tokens, Content: s.content()}
}

// summer computes the checksum of texts. Checksums are for versions of a part, not against attacks.
type summer struct {
	digest xxhash.Digest
	bytes  int
}

func newSummer() (s summer) {
	s.digest.Reset()
	return s
}

func (s *summer) content() Content { return Content{Bytes: s.bytes, sum: uint32(s.digest.Sum64())} }

// add adds content.
func (s *summer) add(text string) {
	s.addName(text)
	s.bytes += len(text)
}

// addName adds a text that is no content.
func (s *summer) addName(text string) {
	_, _ = s.digest.WriteString(text) // it never fails
	_, _ = s.digest.WriteString("\x00")
}

func (s *summer) addBlock(b *chat.Block) {
	s.add(b.Text)
	_, _ = s.digest.Write(b.Data)
	s.addName("") // ends it
	s.bytes += len(b.Data)
	if b.Call != nil {
		s.add(b.Call.ID)
		s.add(b.Call.Name)
		s.add(b.Call.Arguments)
	}
	if b.Item != nil {
		s.add(b.Item.JSON)
	}
	s.addName(b.Type)
	s.addName(b.MimeType)
}

// equal reports whether two parts have the same content.
func (p *Part) equal(o *Part) bool {
	return p.Kind == o.Kind && p.Content == o.Content
}

// isMessage reports whether the part is a message or its context.
func (p *Part) isMessage() bool { return p.Kind == Message || p.Kind == Context }

// isSame reports whether two parts are forms of one message, or contexts of one.
func (p *Part) isSame(o *Part) bool {
	return p.Kind == o.Kind && p.isOf(o)
}

func (p *Part) isOf(o *Part) bool {
	return p.Seq > 0 && p.Seq == o.Seq || p.ID != "" && p.ID == o.ID
}

// Shared is what two requests have in common at their beginning.
type Shared struct {
	Parts  int // number of parts
	Bytes  int // their bytes
	Tokens int // their tokens
}

// Common returns what two requests have in common.
func Common(before, now []Part) (s Shared) {
	for s.Parts < min(len(before), len(now)) && before[s.Parts].equal(&now[s.Parts]) {
		s.add(&now[s.Parts])
	}
	return s
}

func (s *Shared) add(p *Part) {
	s.Parts++
	s.Bytes += p.Bytes
	s.Tokens += p.Tokens
}

// Sum returns the tokens of parts.
func Sum(parts []Part) (tokens int) {
	for i := range parts {
		tokens += parts[i].Tokens
	}
	return tokens
}

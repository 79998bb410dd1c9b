package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// scanMessage reads a message of texts in exactly the form that MarshalJSON writes, several times
// as fast as reflection does. It reports false for every other text, which may be valid too.
func scanMessage(data []byte) (m Message, ok bool) {
	if !utf8.Valid(data) {
		return m, false
	}
	s := &scanner{rest: data, ok: true}
	s.expect("{")
	if s.skip(`"id":`) {
		m.ID = s.text()
		s.expect(",")
	}
	s.expect(`"role":`)
	m.Role = Role(s.text())
	if s.skip(`,"name":`) {
		m.Name = s.text()
	}
	s.expect(`,"blocks":[`)
	m.Blocks = s.blocks()
	if s.skip(`,"tool_calls":[`) {
		m.Blocks = s.calls(m.Blocks)
	}
	if s.skip(`,"tool_call_id":`) {
		m.ToolCallID = s.text()
	}
	if s.skip(`,"context":`) {
		m.Context = s.text()
	}
	m.Stopped = s.skip(`,"stopped":true`)
	if s.skip(`,"origin":{"api":`) {
		m.Origin = s.origin()
	}
	s.expect("}")
	return m, s.ok && len(s.rest) == 0 && slices.Contains(Roles(), m.Role)
}

// scanner reads JSON from the start of rest. Once ok is false, nothing it returns is valid.
type scanner struct {
	rest []byte
	ok   bool
}

// skip reads a literal, and reports whether it is there.
func (s *scanner) skip(literal string) bool {
	if len(s.rest) < len(literal) || string(s.rest[:len(literal)]) != literal {
		return false
	}
	s.rest = s.rest[len(literal):]
	return true
}

func (s *scanner) expect(literal string) { s.ok = s.skip(literal) && s.ok }

// text reads a string.
func (s *scanner) text() (text string) {
	s.expect(`"`)
	end := 0
	for escaped := false; s.ok; end++ {
		n := bytes.IndexByte(s.rest[end:], '"')
		if n < 0 {
			s.ok = false
			break
		}
		end += n
		before := 0
		for before < end && s.rest[end-1-before] == '\\' {
			before++
		}
		escaped = escaped || bytes.IndexByte(s.rest[end-n:end], '\\') >= 0
		if before%2 == 1 {
			continue
		}
		raw := s.rest[:end]
		s.rest = s.rest[end+1:]
		switch {
		case bytes.ContainsFunc(raw, func(r rune) bool { return r < ' ' }):
			s.ok = false
		case !escaped:
			return string(raw)
		default:
			quoted := make([]byte, 0, len(raw)+2)
			quoted = append(append(append(quoted, '"'), raw...), '"')
			s.ok = json.Unmarshal(quoted, &text) == nil
		}
		return text
	}
	return text
}

// blocks reads the rest of a list of texts, of a model's texts and of calls.
func (s *scanner) blocks() []Block {
	if s.skip("]") {
		return nil
	}
	all := make([]Block, 0, 1)
	for s.ok {
		all = append(all, s.block())
		if !s.skip(",") {
			break
		}
	}
	s.expect("]")
	return all
}

// block reads a block.
func (s *scanner) block() (b Block) {
	s.expect(`{"type":`)
	switch b.Type = s.text(); b.Type {
	case CallType:
		s.expect(",")
		b.Call = s.call()
	case "text", ReasoningType, CommentaryType, ItemType:
		s.expect(`,"content":`)
		b.Text = s.text()
		if s.skip(`,"mime_type":`) {
			b.MimeType = s.text()
		}
	default:
		s.ok = false
	}
	if s.skip(`,"item":{"field":`) {
		b.Item = &Item{Field: s.text()}
		if s.skip(`,"json":`) {
			b.Item.JSON = s.text()
		}
		s.expect("}")
	}
	s.expect("}")
	return b
}

// calls reads the rest of a list of tool calls, and appends them to blocks.
func (s *scanner) calls(blocks []Block) []Block {
	for s.ok {
		s.expect("{")
		blocks = append(blocks, Block{Type: CallType, Call: s.call()})
		s.expect("}")
		if !s.skip(",") {
			break
		}
	}
	s.expect("]")
	return blocks
}

// call reads the members of a call.
func (s *scanner) call() *ToolCall {
	c := &ToolCall{}
	s.expect(`"id":`)
	c.ID = s.text()
	s.expect(`,"name":`)
	c.Name = s.text()
	s.expect(`,"arguments":`)
	c.Arguments = s.text()
	return c
}

// origin reads the rest of an origin.
func (s *scanner) origin() *Origin {
	o := &Origin{API: s.text()}
	s.expect(`,"server":`)
	o.Server = s.text()
	s.expect(`,"model":`)
	o.Model = s.text()
	if s.skip(`,"prefix":`) {
		o.Prefix = s.text()
	}
	s.expect("}")
	return o
}

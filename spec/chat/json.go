package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// The JSON form of a message in the language:
//
//	{"role": "user", "blocks": [{"type": "text", "content": "hello"}]}
//
// id, name, tool_calls, tool_call_id, context, stopped and origin are written if they are set, so that a
// stored message can be restored. Bytes are written {"base64": "…"}; a plain string is read
// as its UTF-8 bytes.
//
// A model's message has further blocks. Calls that follow all other blocks are in tool_calls,
// unless they have items; otherwise each is a block in its place:
//
//	{"role": "assistant", "blocks": [
//	  {"type": "reasoning", "content": "", "item": {"field": "thinking", "json": "{\"type\": …}"}},
//	  {"type": "tool_call", "id": "c1", "name": "find", "arguments": "{}", "item": {…}}],
//	 "origin": {"api": "messages", "server": "https://api.anthropic.com", "model": "…"}}

// contentTypes returns the types of blocks that a caller's message may have: the primitive types.
func contentTypes() []string {
	return []string{"text", "int", "float", "boolean", "bytes", "file", "image", "audio", "video",
		"date", "datetime", "time", "citation_url", "citation_document"}
}

// blockTypes returns the types of all blocks.
func blockTypes() []string {
	return append(contentTypes(), ReasoningType, CommentaryType, CallType, ItemType)
}

func mediaType(t string) bool {
	return slices.Contains([]string{"bytes", "file", "image", "audio", "video"}, t)
}

type blockJSON struct {
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	MimeType string          `json:"mime_type,omitempty"`
}

// MarshalJSON returns the language's form.
func (m Message) MarshalJSON() ([]byte, error) {
	size := 64 + len(m.ID) + len(m.Name) + len(m.ToolCallID)
	for i := range m.Blocks {
		size += 48 + m.Blocks[i].Size()
	}
	return appendMessage(make([]byte, 0, size), &m)
}

// UnmarshalJSON parses the language's form and rejects unknown fields and roles. A
// message without an id gets a new one.
func (m *Message) UnmarshalJSON(data []byte) error {
	in, ok := scanMessage(data)
	if !ok {
		var err error
		if in, err = readMessage(data); err != nil {
			return err
		}
	}
	if in.ID == "" {
		in.ID = NewID()
	}
	*m = in
	return nil
}

// readMessage reads a message in any form of its JSON.
func readMessage(data []byte) (in Message, err error) {
	o, err := readObject(data, "a message", "id", "role", "name", "blocks", "tool_calls", "tool_call_id", "context", "stopped", "origin")
	if err != nil {
		return in, err
	}
	if in.Role, err = o.role(); err != nil {
		return in, err
	}
	if err := o.texts(map[string]*string{"id": &in.ID, "name": &in.Name, "tool_call_id": &in.ToolCallID, "context": &in.Context}); err != nil {
		return in, err
	}
	if !o.has("blocks") {
		return in, fmt.Errorf("a message needs %q", "blocks")
	}
	if in.Blocks, err = readList(o, "blocks", readBlock); err != nil {
		return in, err
	}
	calls, err := readList(o, "tool_calls", readToolCall)
	if err != nil {
		return in, err
	}
	if len(calls) > 0 {
		in = in.With(calls...)
	}
	if o.has("stopped") {
		if err := json.Unmarshal(o["stopped"], &in.Stopped); err != nil {
			return in, fmt.Errorf("%q must be true or false, not %s", "stopped", textfmt.JSONKind(o["stopped"]))
		}
	}
	in.Origin, err = readOrigin(o)
	return in, err
}

// readOrigin reads the origin of a message, nil if it has none.
func readOrigin(o object) (*Origin, error) {
	if !o.has("origin") {
		return nil, nil
	}
	from, err := readObject(o["origin"], `"origin"`, "api", "server", "model", "prefix")
	if err != nil {
		return nil, err
	}
	var origin Origin
	err = from.texts(map[string]*string{"api": &origin.API, "server": &origin.Server, "model": &origin.Model, "prefix": &origin.Prefix})
	return &origin, err
}

// Check returns an error if the message cannot be encoded and decoded: an unknown
// role or type of block, or bytes in a text block.
func (m Message) Check() error {
	if !slices.Contains(Roles(), m.Role) {
		_, err := parseRole(string(m.Role))
		return err
	}
	for i, b := range m.Blocks {
		if !slices.Contains(blockTypes(), b.Type) {
			return fmt.Errorf("blocks[%d]: unknown block type %q%s", i, b.Type, suggest(b.Type, contentTypes()))
		}
		if (b.Type == CallType) != (b.Call != nil) {
			return fmt.Errorf("blocks[%d]: a block of type %s must have a call, and no other block", i, CallType)
		}
		if b.Media() && !mediaType(b.Type) {
			return fmt.Errorf("blocks[%d]: a block of type %s cannot hold bytes", i, b.Type)
		}
	}
	return nil
}

// readList parses the items of the list at key; an error has the index of the item.
func readList[T any](o object, key string, read func([]byte) (T, error)) ([]T, error) {
	items, err := o.list(key)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	out := make([]T, len(items))
	for i, raw := range items {
		if out[i], err = read(raw); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
	}
	return out, nil
}

// MarshalJSON returns {type, content, mime_type}.
func (b Block) MarshalJSON() ([]byte, error) {
	return appendBlock(nil, &b)
}

// content returns the JSON of "content": a base64 object for bytes, a JSON value
// for citations, numbers and booleans, else a string.
func (b Block) content() (json.RawMessage, error) {
	if b.Data != nil {
		return compact(map[string][]byte{"base64": b.Data})
	}
	switch b.Type {
	case "citation_url", "citation_document", "int", "float", "boolean":
		if json.Valid([]byte(b.Text)) {
			return json.RawMessage(b.Text), nil
		}
	case "image", "audio", "video", "file", "bytes": // media that is referenced by URL
		return compact(map[string]string{"url": b.Text})
	}
	return compact(b.Text)
}

// UnmarshalJSON parses {type, content, mime_type} and rejects unknown fields and
// types.
func (b *Block) UnmarshalJSON(data []byte) error {
	in, err := readBlock(data)
	if err == nil {
		*b = in
	}
	return err
}

func readBlock(data []byte) (Block, error) {
	o, err := readObject(data, "a block", "type", "content", "mime_type", "id", "name", "arguments", "item")
	if err != nil {
		return Block{}, err
	}
	b := Block{}
	if b.Item, err = readItem(o); err != nil {
		return Block{}, err
	}
	if err := o.texts(map[string]*string{"type": &b.Type, "mime_type": &b.MimeType}); err != nil {
		return Block{}, err
	}
	if b.Type == "" {
		return Block{}, fmt.Errorf("a block needs a %q", "type")
	}
	if b.Type == CallType {
		call, err := o.toolCall()
		b.Call = &call
		return b, err
	}
	for _, key := range []string{"id", "name", "arguments"} {
		if _, found := o[key]; found {
			return Block{}, fmt.Errorf("a block of type %s has no field %q", b.Type, key)
		}
	}
	if !slices.Contains(blockTypes(), b.Type) {
		return Block{}, fmt.Errorf("unknown block type %q%s", b.Type, suggest(b.Type, contentTypes()))
	}
	raw, found := o["content"]
	if !found {
		return Block{}, fmt.Errorf("a block needs a %q", "content")
	}
	if mediaType(b.Type) {
		err = b.readMedia(raw)
	} else {
		err = b.readText(raw)
	}
	return b, err
}

// readItem reads the item of a block, nil if it has none.
func readItem(o object) (*Item, error) {
	if !o.has("item") {
		return nil, nil
	}
	from, err := readObject(o["item"], `"item"`, "field", "json")
	if err != nil {
		return nil, err
	}
	var item Item
	err = from.texts(map[string]*string{"field": &item.Field, "json": &item.JSON})
	return &item, err
}

// Size returns the bytes of all that the block holds, about as many as its JSON has.
func (b *Block) Size() int {
	n := len(b.Text) + len(b.Data)
	if b.Call != nil {
		n += len(b.Call.ID) + len(b.Call.Name) + len(b.Call.Arguments)
	}
	if b.Item != nil {
		n += len(b.Item.JSON) + 32
	}
	return n
}

// readMedia accepts a string as its UTF-8 bytes, {"base64": …}, and {"url": …}.
func (b *Block) readMedia(raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		b.Data = []byte(s)
		return nil
	}
	o, err := readObject(raw, `the content of a block of bytes`, "base64", "url")
	if err != nil {
		return err
	}
	if o.has("url") {
		b.Text, err = o.text("url")
		return err
	}
	text, err := o.text("base64")
	if err != nil {
		return err
	}
	b.Data, err = decodeBase64(text)
	return err
}

// readText accepts a string, and anything else as its compact JSON text, so that
// numbers keep every digit. Citations are always JSON text.
func (b *Block) readText(raw json.RawMessage) error {
	citation := b.Type == "citation_url" || b.Type == "citation_document"
	if !citation && string(raw) == "null" {
		return nil
	}
	if !citation && raw[0] == '"' {
		return json.Unmarshal(raw, &b.Text)
	}
	b.Text = compactJSON(raw)
	return nil
}

func readToolCall(data []byte) (ToolCall, error) {
	o, err := readObject(data, "a tool call", "id", "name", "arguments")
	if err != nil {
		return ToolCall{}, err
	}
	return o.toolCall()
}

// toolCall parses id, name and arguments. Arguments are a JSON string, kept
// verbatim, or an object, kept as compact JSON.
func (o object) toolCall() (ToolCall, error) {
	var c ToolCall
	if err := o.texts(map[string]*string{"id": &c.ID, "name": &c.Name}); err != nil {
		return ToolCall{}, err
	}
	if !o.has("name") {
		return ToolCall{}, fmt.Errorf("a tool call needs a %q", "name")
	}
	raw := o["arguments"]
	if k := textfmt.JSONKind(raw); k == "an object" {
		c.Arguments = compactJSON(raw)
	} else if s, err := o.text("arguments"); err == nil {
		c.Arguments = s
	} else {
		return ToolCall{}, fmt.Errorf("%q must be a string or an object, not %s", "arguments", k)
	}
	return c, nil
}

// compactJSON removes white space between the tokens of valid JSON.
func compactJSON(raw json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return string(raw)
	}
	return buf.String()
}

// compact returns v as JSON on one line, without escaping <, > and &.
func compact(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// quote returns s as a JSON string.
func quote(s string) json.RawMessage {
	raw, err := compact(s)
	if err != nil {
		return json.RawMessage(strconv.Quote(s))
	}
	return raw
}

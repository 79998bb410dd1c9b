package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The types of blocks that this client reads. All others are kept as they are.
const (
	textType       = "text"
	thinkingType   = "thinking"
	redactedType   = "redacted_thinking"
	toolUseType    = "tool_use"
	compactionType = "compaction"
	citationField  = "citation" // the item of a block that repeats a citation of a text
)

// block is a content block of an answer, which a stream sends in parts.
type block struct {
	raw       json.RawMessage // as it came, or as it began; nil once it has changed
	members   object
	kind      string
	added     map[string]*strings.Builder // what deltas add to the members that are texts
	input     strings.Builder             // the input of a call, in parts
	citations []json.RawMessage           // the citations of a text, in parts
}

// parseBlock reads a block, whole or as a stream begins it.
func parseBlock(raw json.RawMessage) (*block, error) {
	members, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	b := &block{raw: raw, members: members, kind: members.text("type")}
	if b.kind == "" {
		return nil, errors.New("a content block has no type")
	}
	return b, nil
}

// add adds a delta and returns the text and the reasoning in it.
func (b *block) add(raw json.RawMessage) (text, reasoning string, err error) {
	delta, err := parseObject(raw)
	if err != nil {
		return "", "", err
	}
	switch kind := delta.text("type"); kind {
	case "input_json_delta":
		b.input.WriteString(delta.text("partial_json"))
	case "citations_delta":
		if c := delta.get("citation"); c != nil {
			b.citations = append(b.citations, c)
		}
	case "text_delta", "thinking_delta", "signature_delta":
		name := strings.TrimSuffix(kind, "_delta")
		text := delta.text(name)
		b.extend(name, text)
		switch name {
		case textType:
			return text, "", nil
		case thinkingType:
			return "", text, nil
		}
	default: // such as compaction_delta
		for _, m := range delta.without("type") {
			b.members.set(m.name, m.value)
			b.raw = nil
		}
	}
	return "", "", nil
}

// extend adds to a member that is a text.
func (b *block) extend(name, text string) {
	if b.added == nil {
		b.added = map[string]*strings.Builder{}
	}
	if b.added[name] == nil {
		b.added[name] = &strings.Builder{}
		b.added[name].WriteString(b.members.text(name))
	}
	b.added[name].WriteString(text)
}

// complete returns the members and the JSON of the block, as an answer that is not streamed has them.
func (b *block) complete() (object, json.RawMessage) {
	for _, name := range []string{textType, thinkingType, "signature"} {
		if added := b.added[name]; added != nil {
			b.members.setText(name, added.String())
			b.raw = nil
		}
	}
	if input := b.input.String(); json.Valid([]byte(input)) {
		b.members.set("input", json.RawMessage(input))
		b.raw = nil
	}
	if len(b.citations) > 0 {
		b.members.set("citations", array(b.citations))
		b.raw = nil
	}
	if b.raw == nil {
		b.raw = b.members.json()
	}
	return b.members, b.raw
}

// arguments returns the JSON text of a call's input; that of a call that was cut off is no JSON.
func (b *block) arguments() string {
	if b.input.Len() > 0 {
		return b.input.String()
	}
	return string(b.members.get("input"))
}

// A block of text of a message is one or more blocks of the provider, which splits a text where its
// citations change. Its item is a list of segments: their lengths in bytes, and what they have
// besides a text.

// lengthField is the member of a segment with the length of its text.
const lengthField = "length"

// segment returns the segment of a text block.
func segment(members object) object {
	length, _ := json.Marshal(len(members.text(textType))) // a number always encodes
	return append(object{{lengthField, length}}, members.without("type", textType)...)
}

// segmentsItem returns the item of a text; false if the text alone is enough.
func segmentsItem(segments []object) (chat.Item, bool) {
	if len(segments) == 0 || len(segments) == 1 && len(segments[0]) == 1 {
		return chat.Item{}, false
	}
	list := make([]json.RawMessage, len(segments))
	for i, s := range segments {
		list[i] = s.json()
	}
	return chat.Item{Field: textType, JSON: string(array(list))}, true
}

// segmentsOf returns the segments of a block of text.
func segmentsOf(b chat.Block) []object {
	var raw []json.RawMessage
	if b.Item != nil && json.Unmarshal([]byte(b.Item.JSON), &raw) == nil {
		list, total := make([]object, len(raw)), 0
		for i := range raw {
			list[i], _ = parseObject(raw[i]) // has no length then
			var n int
			if json.Unmarshal(list[i].get(lengthField), &n) == nil {
				total += n
			}
		}
		if total == len(b.Text) {
			return list
		}
	}
	return []object{segment(object{{textType, quote(b.Text)}})}
}

// textParts returns the blocks of the provider that a block of text is.
func textParts(b chat.Block) []part {
	var parts []part
	rest := b.Text
	for _, s := range segmentsOf(b) {
		var n int
		if json.Unmarshal(s.get(lengthField), &n) != nil || n < 0 || n > len(rest) {
			return []part{{Type: textType, Text: b.Text}}
		}
		p := part{Type: textType, Text: rest[:n]}
		if attributes := s.without(lengthField); len(attributes) > 0 {
			p.raw = append(object{{"type", quote(textType)}, {textType, quote(p.Text)}}, attributes...).json()
		}
		parts, rest = append(parts, p), rest[n:]
	}
	return parts
}

// itemParts returns what goes back to the provider for a block with an item.
func itemParts(b chat.Block) []part {
	switch {
	case b.IsCitation():
		return nil // is in its text
	case b.Call != nil:
		p := callPart(*b.Call)
		members := object{{"type", quote(p.Type)}, {"id", quote(p.ID)}, {"name", quote(p.Name)}, {"input", p.Input}}
		attributes, _ := parseObject([]byte(b.Item.JSON)) // none without JSON
		p.raw = append(members, attributes...).json()
		return []part{p}
	case b.IsText():
		return textParts(b)
	}
	return []part{{Type: b.Item.Field, raw: json.RawMessage(b.Item.JSON)}}
}

// callPart encodes a call.
func callPart(c chat.ToolCall) part {
	return part{Type: toolUseType, ID: wire.PlainID(c.ID), Name: c.Name, Input: wire.Arguments(c.Arguments)}
}

// isThinking reports whether a block has the item of a thinking block.
func isThinking(b *chat.Block) bool {
	return b.Item != nil && (b.Item.Field == thinkingType || b.Item.Field == redactedType)
}

// location is a citation: a web page, a passage of a document, or a result of a search.
type location struct {
	URL    string `json:"url"`
	Source string `json:"source"`         // of a search result
	Title  string `json:"title"`          // of a web page or a search result
	Name   string `json:"document_title"` // of a document
	File   string `json:"file_id"`
	Page   int    `json:"start_page_number"`
	Text   string `json:"cited_text"`
}

// citationBlocks returns the sources that texts cite, each once, in the order of their first citation.
func citationBlocks(cited []json.RawMessage) []chat.Block {
	var blocks []chat.Block
	seen := map[location]bool{}
	for _, raw := range cited {
		var at location
		if json.Unmarshal(raw, &at) != nil {
			continue
		}
		same := at
		same.Text = ""
		if seen[same] {
			continue
		}
		seen[same] = true
		c := citation.Source{Number: len(blocks) + 1, URL: at.URL, Page: at.Page, Text: at.Text,
			ID: cmp.Or(at.URL, at.Source, at.File, at.Name), Title: cmp.Or(at.Title, at.Name, at.URL, at.Source)}
		b := c.Block()
		b.Item = &chat.Item{Field: citationField}
		blocks = append(blocks, b)
	}
	return blocks
}

// object is a JSON object that keeps the order of its members, so that what the provider sent goes
// back as it came.
type object []member

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// parseObject reads a JSON object.
func parseObject(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("a content block is not an object")
	}
	var o object
	for dec.More() {
		var m member
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m.name, _ = t.(string) // names are strings
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, nil
}

// get returns a member, nil if there is none or it is null.
func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string, empty for others.
func (o object) text(name string) string {
	var text string
	_ = json.Unmarshal(o.get(name), &text) // leaves an empty text
	return text
}

// set replaces a member, or adds it at the end.
func (o *object) set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

// setText is set for a string.
func (o *object) setText(name, text string) { o.set(name, quote(text)) }

// without returns the object without some members and without null members.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		return string(m.value) == "null" || slices.Contains(names, m.name)
	})
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quote(m.name)...), ':'), m.value...)
	}
	return append(b, '}'), nil
}

// array returns a JSON array. Unlike json.Marshal it changes nothing in its elements.
func array(elements []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// json returns the object as JSON.
func (o object) json() json.RawMessage {
	raw, _ := o.MarshalJSON() // never fails
	return raw
}

// quote returns a JSON string. It escapes only what JSON requires, as the provider does.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

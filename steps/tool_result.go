package steps

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// toolResult is what a model gets as the result of a call: a text, and the images, sounds
// and PDF documents that the tool returned.
type toolResult []chat.Block

// textResult returns a result that is a text.
func textResult(text string) toolResult { return toolResult{{Type: "text", Text: text}} }

// text returns the result without its media, which are named by their type and size.
func (r toolResult) text() string {
	var parts []string
	for _, b := range r {
		if b.Media() {
			parts = append(parts, fmt.Sprintf("[%s, %d bytes]", cmp.Or(b.MimeType, b.Type), len(b.Data)))
		} else {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// withNote returns the result with a text at its end.
func (r toolResult) withNote(note string) toolResult {
	if len(r) == 1 && !r[0].Media() {
		return textResult(r[0].Text + "\n\n" + note)
	}
	return append(r[:len(r):len(r)], textResult(note)...)
}

// digest returns a text that is the same for equal results.
func (r toolResult) digest() string {
	h := sha256.New()
	for _, b := range r {
		fmt.Fprintf(h, "%q %q %q %x ", b.Type, b.MimeType, b.Text, b.Data)
	}
	return string(h.Sum(nil))
}

// MarshalJSON returns a string for a text, otherwise a list of blocks.
func (r toolResult) MarshalJSON() ([]byte, error) {
	if len(r) == 1 && !r[0].Media() {
		return json.Marshal(r[0].Text)
	}
	return json.Marshal([]chat.Block(r))
}

// UnmarshalJSON parses what MarshalJSON returned.
func (r *toolResult) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*r = textResult(text)
		return nil
	}
	return json.Unmarshal(raw, (*[]chat.Block)(r))
}

// message returns the message with the result of a call.
func (r toolResult) message(call chat.ToolCall) chat.Message {
	return chat.Message{ID: chat.NewID(), Role: chat.Tool, Name: call.Name, ToolCallID: call.ID, Blocks: r}
}

// resultOf returns what a model gets of the value that a tool returned. Media in lists and
// objects are blocks after the text, in which a reference replaces each.
func resultOf(result any) toolResult {
	var m mediaInResult
	v := value.FromGo(result)
	switch x := v.(type) {
	case chat.Message:
		return resultMessage(x)
	case []any:
		if parts := m.contents(x); parts != nil {
			return parts
		}
	default:
		if block, ok := mediaOf(x); ok {
			return toolResult{block}
		}
	}
	replaced := m.replace(v)
	if !m.found {
		return textResult(value.Text(result)) // with numbers as they are
	}
	return append(textResult(value.Text(replaced)), m.blocks...)
}

// resultMessage returns the text and the media of a message.
func resultMessage(msg chat.Message) toolResult {
	r := textResult(msg.Text())
	for _, b := range msg.Blocks {
		if b.Media() {
			r = append(r, b)
		}
	}
	if len(r) > 1 && r[0].Text == "" {
		return r[1:]
	}
	return r
}

// mediaInResult collects the media of a result.
type mediaInResult struct {
	blocks []chat.Block
	found  bool // whether there were media, or bytes that a model cannot read
}

// contents returns a list of texts and media in their order, as servers with the Model
// Context Protocol return them; nil for any other list.
func (m *mediaInResult) contents(items []any) toolResult {
	var all toolResult
	found := false
	for _, item := range items {
		block, isMedia := mediaOf(item)
		switch x := item.(type) {
		case []byte, string:
			if !isMedia {
				block = chat.Block{Type: "text", Text: value.Text(m.replace(x))}
			}
		default:
			return nil
		}
		found, all = found || isMedia, append(all, block)
	}
	if !found {
		return nil
	}
	return all
}

// replace returns a value in which references replace media.
func (m *mediaInResult) replace(v any) any {
	if block, ok := mediaOf(v); ok {
		m.found, m.blocks = true, append(m.blocks, block)
		return fmt.Sprintf("[%s %d]", block.Type, len(m.blocks))
	}
	switch x := v.(type) {
	case []byte:
		if !mediatype.IsText(x) && len(x) > 0 {
			m.found = true
			return fmt.Sprintf("[%d bytes of another type than text, image, sound or PDF]", len(x))
		}
	case []any:
		all := make([]any, len(x))
		for i, item := range x {
			all[i] = m.replace(item)
		}
		return all
	case *value.Record:
		fields := make([]value.Field, 0, x.Len())
		for name, item := range x.All() {
			fields = append(fields, value.Field{Name: name, Value: m.replace(item)})
		}
		return value.NewRecord(x.Type(), fields...)
	}
	return v
}

// mediaOf returns the block of a value that is an image, a sound or a PDF document: bytes,
// {"base64": …} or a data URL. A text is never one.
func mediaOf(v any) (chat.Block, bool) {
	var data []byte
	switch x := v.(type) {
	case []byte:
		data = x
	case string:
		rest, _ := strings.CutPrefix(x, "data:")
		_, encoded, ok := strings.Cut(rest, ";base64,")
		if !ok || len(rest) == len(x) {
			return chat.Block{}, false
		}
		data, _ = base64.StdEncoding.DecodeString(encoded) // not media if it is not base64
	case *value.Record:
		field, _ := x.Get("base64")
		encoded, ok := field.(string)
		if !ok || x.Len() != 1 {
			return chat.Block{}, false
		}
		data, _ = base64.StdEncoding.DecodeString(encoded)
	}
	mime := mediatype.Detect(data)
	kind := mediatype.KindOf(mime)
	if kind == "" || mime == mediatype.SVG || kind == "file" && mime != "application/pdf" {
		return chat.Block{}, false
	}
	return chat.Block{Type: kind, Data: data, MimeType: mime}, true
}

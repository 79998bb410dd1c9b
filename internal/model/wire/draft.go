package wire

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ResponseBuilder collects the blocks of an answer in their order. The zero value is ready to use.
type ResponseBuilder struct {
	id     string // id of the message, once it is needed
	blocks []chat.Block
	text   strings.Builder // of the last block, if it is open
	open   bool            // whether the last block may get more text
	spoken bool            // whether a block has text of the answer
	size   int             // bytes of all blocks
	calls  int
}

// AppendText adds text and reasoning to the answer, and returns the deltas for them. The deltas
// of all texts together are the text of the message.
func (d *ResponseBuilder) AppendText(text, reasoning string) ([]model.Event, error) {
	var events []model.Event
	if reasoning != "" {
		if err := d.extend(chat.ReasoningType, reasoning); err != nil {
			return nil, err
		}
		events = append(events, model.Event{Reasoning: reasoning})
	}
	if text != "" {
		delta := text
		if !d.open || d.blocks[len(d.blocks)-1].Type != "text" {
			delta = d.TextSeparator() + text
		}
		if err := d.extend("text", text); err != nil {
			return nil, err
		}
		d.spoken = true
		events = append(events, model.Event{Text: delta})
	}
	return events, nil
}

// TextSeparator returns what is between the text so far and a text of another block.
func (d *ResponseBuilder) TextSeparator() string {
	if d.spoken {
		return chat.TextSeparator
	}
	return ""
}

// AppendCommentary adds what the model says before its answer, and returns the deltas for it.
func (d *ResponseBuilder) AppendCommentary(text string) ([]model.Event, error) {
	if text == "" {
		return nil, nil
	}
	return []model.Event{{Commentary: text}}, d.extend(chat.CommentaryType, text)
}

// extend adds text to the last block if that is open and of the type, else as a new block.
func (d *ResponseBuilder) extend(kind, text string) error {
	if d.size += len(text); d.size > MaxAnswer {
		return ErrTooLong
	}
	if !d.open || d.blocks[len(d.blocks)-1].Type != kind {
		d.add(chat.Block{Type: kind})
		d.open = true
	}
	d.text.WriteString(text)
	return nil
}

// add closes the last block and adds another one.
func (d *ResponseBuilder) add(b chat.Block) {
	d.Close()
	d.blocks = append(d.blocks, b)
}

// Append adds a block that is complete, such as a citation.
func (d *ResponseBuilder) Append(b chat.Block) { d.add(b) }

// Close ends the last block: text that follows begins another one.
func (d *ResponseBuilder) Close() {
	if d.open {
		d.blocks[len(d.blocks)-1].Text = d.text.String()
		d.text, d.open = strings.Builder{}, false
	}
}

// AppendItem adds a block with an item: of a type of a model's block, with a text that readers
// may see. Text that follows begins another block.
func (d *ResponseBuilder) AppendItem(kind, text string, item chat.Item) error {
	if d.size += len(text) + len(item.JSON); d.size > MaxAnswer {
		return ErrTooLong
	}
	d.add(chat.Block{Type: kind, Text: text, Item: &item})
	return nil
}

// Attach sets the item of the last block, and closes it. If the last block is of another type, or
// has an item, an empty block of the type gets it. An empty type is that of any block.
func (d *ResponseBuilder) Attach(kind string, item chat.Item) error {
	if d.size += len(item.JSON); d.size > MaxAnswer {
		return ErrTooLong
	}
	d.Close()
	if n := len(d.blocks); n == 0 || kind != "" && d.blocks[n-1].Type != kind || d.blocks[n-1].Item != nil {
		d.blocks = append(d.blocks, chat.Block{Type: kind})
	}
	d.blocks[len(d.blocks)-1].Item = &item
	return nil
}

// AppendCitation adds a source of the answer, such as citation.Source makes it. Text that follows
// begins another block.
func (d *ResponseBuilder) AppendCitation(source chat.Block) error {
	if d.size += len(source.Text); d.size > MaxAnswer {
		return ErrTooLong
	}
	d.add(source)
	return nil
}

// AppendMedia adds an image, a sound or a file after the text so far. Without a type it is detected.
func (d *ResponseBuilder) AppendMedia(mime string, data []byte) error {
	if d.size += len(data); d.size > MaxAnswer {
		return ErrTooLong
	}
	mime = cmp.Or(mime, mediatype.Detect(data), "application/octet-stream")
	kind, _, _ := strings.Cut(mime, "/")
	if kind != "image" && kind != "audio" && kind != "video" {
		kind = "file"
	}
	d.add(chat.Block{Type: kind, Data: data, MimeType: mime})
	return nil
}

// AppendBase64 is AppendMedia for data as base64.
func (d *ResponseBuilder) AppendBase64(mime, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("the %s of the answer is not base64", cmp.Or(mime, "file"))
	}
	return d.AppendMedia(mime, raw)
}

// Call adds a complete tool call and returns its id. It assigns one if the server does
// not, because the result of a tool must name its call. Attach gives the call an item.
func (d *ResponseBuilder) Call(id, name, arguments string) string {
	if arguments == "" || arguments == "null" { // of a tool without arguments
		arguments = "{}"
	}
	d.id = cmp.Or(d.id, chat.NewID())
	id = cmp.Or(id, fmt.Sprintf("call_%s%d", d.id[len(d.id)/2:], d.calls))
	d.calls++
	d.add(chat.CallBlock(chat.ToolCall{ID: id, Name: name, Arguments: arguments}))
	return id
}

// Calls returns the number of calls.
func (d *ResponseBuilder) Calls() int { return d.calls }

// Message returns the message. Without calls it has a text, which may be empty.
func (d *ResponseBuilder) Message() chat.Message {
	d.Close()
	m := chat.Message{ID: cmp.Or(d.id, chat.NewID()), Role: chat.Assistant, Blocks: d.blocks}
	content := d.calls > 0
	for i := range m.Blocks {
		content = content || !m.Blocks[i].IsModels()
	}
	if !content {
		m.Blocks = append(m.Blocks, chat.Block{Type: "text"})
	}
	return m
}

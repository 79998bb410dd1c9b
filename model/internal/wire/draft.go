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

// ResponseBuilder collects the message of an answer. The zero value is ready to use.
type ResponseBuilder struct {
	id    string // id of the message, once it is needed
	text  strings.Builder
	parts []chat.Block // media, and the texts before them
	begun int          // length of the text that parts has
	media int          // bytes of the media
	calls []chat.ToolCall
}

// AppendText adds text and returns the deltas for it and for reasoning, which messages do
// not contain.
func (d *ResponseBuilder) AppendText(text, reasoning string) ([]model.Event, error) {
	if d.text.Len()+len(text) > MaxAnswer {
		return nil, ErrTooLong
	}
	d.text.WriteString(text)
	var events []model.Event
	if reasoning != "" {
		events = append(events, model.Event{Reasoning: reasoning})
	}
	if text != "" {
		events = append(events, model.Event{Text: text})
	}
	return events, nil
}

// AppendMedia adds an image, a sound or a file after the text so far. Without a type it is detected.
func (d *ResponseBuilder) AppendMedia(mime string, data []byte) error {
	if d.media += len(data); d.media > MaxAnswer {
		return ErrTooLong
	}
	mime = cmp.Or(mime, mediatype.Detect(data), "application/octet-stream")
	kind, _, _ := strings.Cut(mime, "/")
	if kind != "image" && kind != "audio" && kind != "video" {
		kind = "file"
	}
	d.cutText()
	d.parts = append(d.parts, chat.Block{Type: kind, Data: data, MimeType: mime})
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

// cutText makes the text since the last part a part.
func (d *ResponseBuilder) cutText() {
	if text := d.text.String()[d.begun:]; text != "" {
		d.parts = append(d.parts, chat.Block{Type: "text", Text: text})
		d.begun = d.text.Len()
	}
}

// Call adds a complete tool call and returns its id. It assigns one if the server does
// not, because the result of a tool must name its call.
func (d *ResponseBuilder) Call(id, name, arguments string) string {
	if arguments == "" || arguments == "null" { // of a tool without arguments
		arguments = "{}"
	}
	d.id = cmp.Or(d.id, chat.NewID())
	id = cmp.Or(id, fmt.Sprintf("call_%s%d", d.id[len(d.id)/2:], len(d.calls)))
	d.calls = append(d.calls, chat.ToolCall{ID: id, Name: name, Arguments: arguments})
	return id
}

// Calls returns the number of calls.
func (d *ResponseBuilder) Calls() int { return len(d.calls) }

// Message returns the message. Without calls it has a text, which may be empty.
func (d *ResponseBuilder) Message() chat.Message {
	m := chat.Message{ID: cmp.Or(d.id, chat.NewID()), Role: chat.Assistant, ToolCalls: d.calls}
	switch {
	case len(d.parts) > 0:
		d.cutText()
		m.Blocks = d.parts
	case d.text.Len() > 0 || len(d.calls) == 0:
		m.Blocks = []chat.Block{{Type: "text", Text: d.text.String()}}
	}
	return m
}

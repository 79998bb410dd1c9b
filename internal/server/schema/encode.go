package schema

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// AppendOutputs appends the values of the flow's outputs as members of a JSON object,
// without its braces.
func (f *Flow) AppendOutputs(b []byte, values []any) []byte {
	for i, v := range f.Outputs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, v.ID)
		b = append(b, ':')
		if i < len(values) {
			b = value.AppendJSON(b, values[i])
		} else {
			b = append(b, "null"...)
		}
	}
	return b
}

// Record returns the values of the flow's outputs as a record.
func (f *Flow) Record(values []any) *value.Record {
	fields := make([]value.Field, 0, len(f.Outputs))
	for i, v := range f.Outputs {
		if i < len(values) {
			fields = append(fields, value.Field{Name: v.ID, Value: values[i]})
		}
	}
	return value.NewRecord("", fields...)
}

// AnswerOf returns the answer of a conversational flow among its outputs, nil if it has none. It has
// only the content of the message: reasoning and commentary have their own events.
func (f *Flow) AnswerOf(values []any) *chat.Message {
	for i, v := range f.Outputs {
		if f.Answer == nil || v.ID != f.Answer.ID || i >= len(values) {
			continue
		}
		if m, ok := values[i].(chat.Message); ok {
			m = m.Content()
			return &m
		}
	}
	return nil
}

// Commentary returns the metadata of a reasoning part of the AI SDK whose text is commentary.
func Commentary() map[string]map[string]string {
	return map[string]map[string]string{"qtype": {"phase": "commentary"}}
}

// DataURL returns the content of a block as a URL, empty for text.
func DataURL(b *chat.Block) string {
	switch {
	case b.Type == "text" || !b.Media() && b.Text == "":
		return ""
	case !b.Media():
		return b.Text
	}
	var u strings.Builder
	u.WriteString("data:" + MediaType(b) + ";base64,")
	u.WriteString(base64.StdEncoding.EncodeToString(b.Data))
	return u.String()
}

// MediaType returns the media type of a block.
func MediaType(b *chat.Block) string {
	if b.MimeType != "" {
		return b.MimeType
	}
	switch b.Type {
	case "image":
		return "image/png"
	case "audio":
		return "audio/wav"
	case "video":
		return "video/mp4"
	}
	return "application/octet-stream"
}

func appendString(b []byte, s string) []byte {
	raw, _ := json.Marshal(s) // a string always encodes
	return append(b, raw...)
}

// JSONOrText returns a text that is JSON as it is, and any other text as a JSON string.
func JSONOrText(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	raw, _ := json.Marshal(text) // a text always has a JSON form
	return raw
}

// Answering returns the ids of the steps that write the answer of the flow with a model, in
// alphabetical order.
func (f *Flow) Answering() []string {
	if f.Answer == nil {
		return nil
	}
	writers := f.Spec.Writers(f.Answer.ID)
	ids := []string{}
	for s := range f.Spec.Plan().All() {
		if id := s.Step.Common().ID; writers[id] && s.Model() != nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

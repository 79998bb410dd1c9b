package mcpserver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// decodeMedia replaces the base64 texts of media in a value of a type by their bytes.
// A data: URL is accepted, too; no other address is: the server fetches nothing.
func decodeMedia(t spec.Type, v any) (any, error) {
	switch x := v.(type) {
	case string:
		if t.Elem == nil && t.Custom == nil && t.IsMedia() {
			return decodeBase64(x)
		}
	case []any:
		if t.Elem != nil {
			return decodeItems(*t.Elem, x)
		}
	case *value.Record:
		if t.Custom != nil {
			return decodeFields(t.Custom, x)
		}
	}
	return v, nil
}

func decodeItems(t spec.Type, items []any) (any, error) {
	all := make([]any, len(items))
	for i, item := range items {
		var err error
		if all[i], err = decodeMedia(t, item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return all, nil
}

func decodeFields(t *spec.CustomType, r *value.Record) (any, error) {
	for _, p := range t.Properties {
		x, ok := r.Get(p.Name)
		if !ok {
			continue
		}
		decoded, err := decodeMedia(p.Type, x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		r = r.With(p.Name, decoded)
	}
	return r, nil
}

func decodeBase64(text string) (any, error) {
	if strings.HasPrefix(text, "data:") {
		_, data, ok := strings.Cut(text, ";base64,")
		if !ok {
			return nil, errors.New("the data: URL is not in base64")
		}
		text = data
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("a file is passed as base64 text")
	}
	return data, nil
}

// encodeMedia replaces media in a value by base64 texts, and a message by its text.
func encodeMedia(t spec.Type, v any) any {
	switch x := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	case chat.Message:
		if t.Is("ChatMessage") {
			return x.Text()
		}
	case []any:
		if t.Elem == nil || areMessages(*t.Elem) {
			return x
		}
		all := make([]any, len(x))
		for i, item := range x {
			all[i] = encodeMedia(*t.Elem, item)
		}
		return all
	case *value.Record:
		if t.Custom != nil {
			return encodeFields(t.Custom, x)
		}
	}
	return v
}

// encodeFields does the same for a record, and leaves out fields that are null, which
// the schema of an optional field does not allow.
func encodeFields(t *spec.CustomType, r *value.Record) *value.Record {
	var fields []value.Field
	for name, x := range r.All() {
		if x == nil {
			continue
		}
		i := slices.IndexFunc(t.Properties, func(p spec.Property) bool { return p.Name == name })
		if i >= 0 && !areMessages(t.Properties[i].Type) {
			x = encodeMedia(t.Properties[i].Type, x)
		}
		fields = append(fields, value.Field{Name: name, Value: x})
	}
	return value.NewRecord(r.Type(), fields...)
}

// areMessages reports whether values of a type are messages: only a message that is a
// whole argument or output is a text, others are objects.
func areMessages(t spec.Type) bool { return t.Is("ChatMessage") }

// mediaOf returns the images and sounds of an output as content.
func mediaOf(t spec.Type, v any) []sdk.Content {
	switch x := v.(type) {
	case []byte:
		return mediaContent(t.Name, "", x)
	case chat.Message:
		var all []sdk.Content
		for _, b := range x.Blocks {
			if b.Media() && len(b.Data) > 0 {
				all = append(all, mediaContent(b.Type, b.MimeType, b.Data)...)
			}
		}
		return all
	}
	return nil
}

// mediaContent returns bytes as the content that the protocol has for a type; nothing
// for types without one, which the structured result has.
func mediaContent(kind, mimeType string, data []byte) []sdk.Content {
	if mimeType == "" {
		mimeType = http.DetectContentType(data)
	}
	switch kind {
	case "image":
		return []sdk.Content{&sdk.ImageContent{Data: data, MIMEType: mimeType}}
	case "audio":
		return []sdk.Content{&sdk.AudioContent{Data: data, MIMEType: mimeType}}
	}
	return nil
}

package mediafile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// message returns the object of a message as a message whose media are loaded and checked as
// other media are. Blocks that only a provider makes are not accepted. A text, and a message that
// a program has made, are returned unchanged.
func (s *Source) message(ctx context.Context, t spec.Type, raw any) (any, error) {
	if fields, ok := raw.(map[string]any); ok {
		raw = value.FromGo(fields)
	}
	r, ok := raw.(*value.Record)
	if !ok {
		return raw, nil
	}
	if err := only(r, "id", "role", "name", "blocks", "tool_calls", "tool_call_id"); err != nil {
		return nil, err
	}
	list, _ := r.Get("blocks")
	blocks, _ := list.([]any)
	media := make(map[int]*chat.Block)
	plain := slices.Clone(blocks)
	for i, item := range blocks {
		b, ok := item.(*value.Record)
		if !ok {
			continue // Coerce reports it
		}
		data, err := s.block(ctx, b)
		if err != nil {
			return nil, within(fmt.Sprintf("blocks[%d]", i), err)
		}
		if data != nil {
			media[i], plain[i] = data, b.With("content", "").With("mime_type", data.MimeType)
		}
	}
	if len(media) > 0 {
		r = r.With("blocks", plain)
	}
	made, err := value.Coerce(t, r)
	m, isMessage := made.(chat.Message)
	if err != nil || !isMessage {
		return made, err
	}
	if len(media) > 0 && (m.Role == chat.System || m.Role == chat.Developer) {
		return nil, &value.Error{Reason: fmt.Sprintf("a message with the role %s has texts only, no media", m.Role)}
	}
	for i, b := range media {
		m.Blocks[i].Data = b.Data
	}
	return m, nil
}

// block returns a block of media with its content; nil for other blocks.
func (s *Source) block(ctx context.Context, b *value.Record) (*chat.Block, error) {
	if err := only(b, "type", "content", "mime_type"); err != nil {
		return nil, err
	}
	field, _ := b.Get("type")
	name, _ := field.(string)
	t := spec.Type{Name: name}
	content, _ := b.Get("content")
	switch {
	case !slices.Contains(spec.Primitives(), name): // what providers add to messages, such as reasoning, comes only from them
		return nil, &value.Error{Path: "type", Reason: fmt.Sprintf("%q is not a type of block: expected %s", name, strings.Join(spec.Primitives(), ", "))}
	case !t.IsMedia():
		return nil, nil
	}
	loaded, err := s.media(ctx, t, content)
	if err != nil {
		return nil, &value.Error{Path: "content", Reason: err.Error()}
	}
	data, ok := loaded.([]byte)
	if !ok {
		return nil, &value.Error{Path: "content", Reason: `expected a data URL or {"base64": "…"}, not ` + value.Describe(loaded)}
	}
	declared, _ := b.Get("mime_type")
	mime, isText := declared.(string)
	if declared != nil && !isText {
		return nil, &value.Error{Path: "mime_type", Reason: "expected a text, not " + value.Describe(declared)}
	}
	if mime, err = typeOfKind(name, mime, data); err != nil {
		return nil, &value.Error{Path: "mime_type", Reason: err.Error()}
	}
	return &chat.Block{Type: name, Data: append([]byte{}, data...), MimeType: mime}, nil
}

// only returns an error if an object has another field: callers choose the content of a message, not
// where it is from.
func only(r *value.Record, names ...string) error {
	for _, name := range r.Names() {
		if !slices.Contains(names, name) {
			return &value.Error{Reason: fmt.Sprintf("no field %q: expected %s", name, strings.Join(names, ", "))}
		}
	}
	return nil
}

package mediafile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/mediatype"
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

// Block returns the block of a file that a caller of a server attaches. kind is the type of the
// block (image, audio, video or file) if the caller names it; empty means that the content decides,
// which may be a text, too. declared is the media type that the caller names, or empty; see
// mediatype.Of.
func Block(kind string, data []byte, declared string) (*chat.Block, error) {
	mime, err := typeOfKind(kind, declared, data)
	switch {
	case len(data) == 0:
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	case kind == "" && isText(mime, data):
		if !utf8.Valid(data) {
			return nil, fmt.Errorf("a text of type %s must be UTF-8", mime)
		}
		return &chat.Block{Type: "text", Text: string(data), MimeType: mime}, checkSize("file", int64(len(data)))
	case kind == "":
		kind = mediatype.KindOf(mime)
	}
	if _, err = checked(kind, data); err != nil {
		return nil, err
	}
	return &chat.Block{Type: kind, Data: data, MimeType: mime}, nil
}

// isText reports whether data of a media type is sent as a text, such as JSON.
func isText(mime string, data []byte) bool {
	return strings.HasPrefix(mime, "text/") || mediatype.KindOf(mime) == "file" && mime != "application/pdf" && mediatype.IsText(data)
}

// typeOfKind returns the media type of the data of a block of a kind, empty if it is not known.
func typeOfKind(kind, declared string, data []byte) (string, error) {
	mime, err := mediatype.Of(declared, data)
	if err != nil || kind != "image" && kind != "audio" && kind != "video" {
		return mime, err
	}
	if named, _ := mediatype.Of(declared, nil); named != mediatype.Binary && mediatype.KindOf(named) != kind {
		return "", fmt.Errorf("%s is not a media type of type %s", declared, kind)
	}
	if mediatype.KindOf(mime) != kind {
		return "", mediatype.Check(kind, data)
	}
	return mime, nil
}

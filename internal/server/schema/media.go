package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Fetcher returns the content of an address that a client names, and its media type. It
// decides which addresses are allowed.
type Fetcher func(url string) (data []byte, mediaType string, err error)

// FetchMedia replaces addresses in a row by their content: texts of inputs of the types
// image, audio, video and file, of lists of these and of blocks of messages, that begin as a URL does.
func (f *Flow) FetchMedia(row *value.Record, fetch Fetcher) (*value.Record, error) {
	for _, v := range f.Inputs {
		raw, ok := row.Get(v.ID)
		if !ok {
			continue
		}
		fetched, err := fetchValue(v.Type, raw, fetch)
		if err != nil {
			return nil, err
		}
		row = row.With(v.ID, fetched)
	}
	return row, nil
}

func fetchValue(t spec.Type, raw any, fetch Fetcher) (any, error) {
	switch x := raw.(type) {
	case []any:
		if t.Elem == nil || !isFetched(*t.Elem) && !t.Elem.Is("ChatMessage") {
			return raw, nil
		}
		all := make([]any, len(x))
		for i, item := range x {
			var err error
			if all[i], err = fetchValue(*t.Elem, item, fetch); err != nil {
				return nil, err
			}
		}
		return all, nil
	case *value.Record:
		if t.Is("ChatMessage") {
			return fetchBlocks(x, fetch)
		}
	case string:
		if isFetched(t) && isURL(x) {
			data, _, err := fetch(x)
			return data, err
		}
	}
	return raw, nil
}

// fetchBlocks replaces the addresses of the media of a message.
func fetchBlocks(m *value.Record, fetch Fetcher) (any, error) {
	list, _ := m.Get("blocks")
	blocks, _ := list.([]any)
	if len(blocks) == 0 {
		return m, nil
	}
	fetched := slices.Clone(blocks)
	for i, item := range blocks {
		b, ok := item.(*value.Record)
		if !ok {
			continue
		}
		kind, _ := b.Get("type")
		content, _ := b.Get("content")
		address := content
		if r, ok := content.(*value.Record); ok && r.Len() == 1 {
			address, _ = r.Get("url")
		}
		name, _ := kind.(string)
		text, ok := address.(string)
		if !ok || !isFetched(spec.Type{Name: name}) || !isURL(text) {
			continue
		}
		data, _, err := fetch(text)
		if err != nil {
			return nil, err
		}
		fetched[i] = b.With("content", data)
	}
	return m.With("blocks", fetched), nil
}

// isFetched reports whether a text of a type may be an address. Bytes are never one.
func isFetched(t spec.Type) bool { return t.IsMedia() && !t.Is("bytes") }

func isURL(text string) bool {
	return (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) && !strings.ContainsAny(text, " \t\r\n")
}

// convert converts a value to the type of an input, and checks media by their content. A
// client cannot name files.
func convert(v *spec.Variable, raw any) (any, error) {
	t := v.Type
	t.Optional = v.IsOptional()
	loaded, err := (&mediafile.Source{}).Load(context.Background(), t, raw)
	if err != nil {
		return nil, err
	}
	if loaded == nil && t.Optional {
		return nil, nil
	}
	return value.Coerce(v.Type, loaded)
}

package mcp

import (
	"encoding/base64"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec/value"
)

// fileOf returns the bytes of an image, a sound or an embedded file; nil for other contents.
func fileOf(content sdk.Content) []byte {
	switch c := content.(type) {
	case *sdk.ImageContent:
		return c.Data
	case *sdk.AudioContent:
		return c.Data
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			return c.Resource.Blob
		}
	}
	return nil
}

// filesOf returns the files among contents.
func filesOf(contents []sdk.Content) [][]byte {
	var files [][]byte
	for _, c := range contents {
		if data := fileOf(c); data != nil {
			files = append(files, data)
		}
	}
	return files
}

// mixed returns texts and files as a list.
func mixed(contents []sdk.Content) []any {
	var all []any
	for _, c := range contents {
		if data := fileOf(c); data != nil {
			all = append(all, data)
		} else if text := texts([]sdk.Content{c}); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// withFiles adds files to a structured result, whose texts are often the files in base64:
// these are replaced by the bytes. The other files are its field content, unless it has
// one.
func withFiles(v any, files [][]byte) any {
	encoded := make([]string, len(files))
	for i, data := range files {
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	found := make([]bool, len(files))
	v = replaceText(v, func(text string) any {
		i := slices.Index(encoded, text)
		if i < 0 {
			return text
		}
		found[i] = true
		return files[i]
	})
	var rest []any
	for i, data := range files {
		if !found[i] {
			rest = append(rest, data)
		}
	}
	r, ok := v.(*value.Record)
	if !ok || len(rest) == 0 {
		return v
	}
	if _, taken := r.Get("content"); taken {
		return v
	}
	return r.With("content", rest)
}

// replaceText returns a value with f applied to each of its texts.
func replaceText(v any, f func(string) any) any {
	switch x := v.(type) {
	case string:
		return f(x)
	case []any:
		all := make([]any, len(x))
		for i, item := range x {
			all[i] = replaceText(item, f)
		}
		return all
	case *value.Record:
		for name, item := range x.All() {
			x = x.With(name, replaceText(item, f))
		}
		return x
	}
	return v
}

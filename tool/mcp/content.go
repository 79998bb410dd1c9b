package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec/value"
)

// read returns the value of a result: its structured content, else its text, which is
// parsed if it is a JSON object or list, or the bytes of a single image or file. Texts and
// files are a list, in their order.
func read(result *sdk.CallToolResult) (any, error) {
	files := filesOf(result.Content)
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, fmt.Errorf("invalid result: %w", err)
		}
		v, err := value.Parse(string(raw))
		if err != nil || len(files) == 0 {
			return v, err
		}
		return withFiles(v, files), nil
	}
	switch {
	case len(files) == 1 && len(result.Content) == 1:
		return files[0], nil
	case len(files) > 0:
		return mixed(result.Content), nil
	}
	text := texts(result.Content)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, err := value.Parse(trimmed); err == nil {
			return v, nil
		}
	}
	return text, nil
}

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

// texts joins the text of the contents, one per line. An embedded text is its text, a link
// to a resource its address with the name and the description.
func texts(contents []sdk.Content) string {
	lines := make([]string, 0, len(contents))
	for _, c := range contents {
		lines = append(lines, textOf(c))
	}
	return strings.Join(lines, "\n")
}

// textOf returns the text of a content. One without a text is JSON.
func textOf(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ResourceLink:
		return linkText(c)
	case *sdk.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return c.Resource.Text
		}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return string(raw)
}

// linkText describes a link to a resource, which a model may request by its address.
func linkText(l *sdk.ResourceLink) string {
	text := l.URI
	if name := l.Title; name != "" {
		text = name + ": " + text
	} else if l.Name != "" {
		text = l.Name + ": " + text
	}
	if l.Description != "" {
		text += " (" + l.Description + ")"
	}
	return text
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

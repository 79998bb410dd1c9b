package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec/value"
)

// read returns the value of a result: its structured content, else its text, which is
// parsed if it is a JSON object or list, or the bytes of a single image or file. Texts and
// files are a list, in their order. Texts next to structured content that say more than it
// are its field content, as files are.
func read(result *sdk.CallToolResult) (any, error) {
	files := filesOf(result.Content)
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, fmt.Errorf("invalid result: %w", err)
		}
		v, err := value.Parse(string(raw))
		if err != nil {
			return nil, err
		}
		v, placed := withFiles(v, files)
		return withContent(v, others(result, placed)), nil
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

// withFiles puts files in place of their base64 in a structured result, and reports which
// ones it has.
func withFiles(v any, files [][]byte) (with any, placed []bool) {
	if len(files) == 0 {
		return v, nil
	}
	encoded := make([]string, len(files))
	for i, data := range files {
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	placed = make([]bool, len(files))
	v = replaceText(v, func(text string) any {
		i := slices.Index(encoded, text)
		if i < 0 {
			return text
		}
		placed[i] = true
		return files[i]
	})
	return v, placed
}

// others returns the texts and files next to a structured result that are not in it, in their
// order. Servers also send the result itself as text, or its parts. placed reports which files are
// in it.
func others(result *sdk.CallToolResult, placed []bool) []any {
	var rest []any
	for _, c := range result.Content {
		if data := fileOf(c); data != nil {
			if !placed[0] {
				rest = append(rest, data)
			}
			placed = placed[1:]
			continue
		}
		text := textOf(c)
		if strings.TrimSpace(text) == "" {
			continue
		}
		var parsed any = text
		_ = json.Unmarshal([]byte(text), &parsed) // leaves the text
		if !holds(result.StructuredContent, text) && !holds(result.StructuredContent, parsed) {
			rest = append(rest, text)
		}
	}
	return rest
}

// holds reports whether a decoded JSON value is another one, or has it inside.
func holds(v, inner any) bool {
	if reflect.DeepEqual(v, inner) {
		return true
	}
	has := func(v any) bool { return holds(v, inner) }
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, has)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), has)
	}
	return false
}

// withContent returns a structured result with its other contents as the field content,
// unless it has one; one text is not a list. A result that is not an object becomes a field.
func withContent(v any, more []any) any {
	if len(more) == 0 {
		return v
	}
	var content any = more
	if text, ok := more[0].(string); ok && len(more) == 1 {
		content = text
	}
	r, ok := v.(*value.Record)
	if !ok {
		r = value.NewRecord("", value.Field{Name: "structuredContent", Value: v})
	}
	if _, taken := r.Get("content"); taken {
		return v
	}
	return r.With("content", content)
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

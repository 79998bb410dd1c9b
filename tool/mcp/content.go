package mcp

import (
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec/value"
)

// read returns the value of a result: its structured content, else its text, which is
// parsed if it is a JSON object or list, or the bytes of a single image, sound or file.
func read(result *sdk.CallToolResult) (any, error) {
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, err
		}
		return value.Parse(string(raw))
	}
	if len(result.Content) == 1 {
		if data := bytesOf(result.Content[0]); data != nil {
			return data, nil
		}
	}
	text := texts(result.Content)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, err := value.Parse(trimmed); err == nil {
			return v, nil
		}
	}
	return text, nil
}

// bytesOf returns the bytes of an image, a sound or an embedded file; nil for a text.
func bytesOf(c sdk.Content) []byte {
	switch c := c.(type) {
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

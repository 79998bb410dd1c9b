package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Images, sounds and embedded files of a result are bytes: alone, in a list with the texts
// in their order, or in the structured result in place of their base64. Texts and files that
// are not in the structured result are its field content.
func TestServer_Files(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\n\x00")
	image := &sdk.ImageContent{Data: png, MIMEType: "image/png"}
	text := &sdk.TextContent{Text: "a plot"}
	pdf := &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.pdf", MIMEType: "application/pdf", Blob: []byte("%PDF-1")}}
	note := &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "a note"}}
	results := map[string]struct {
		sdk.CallToolResult
		want any
	}{
		"image":      {sdk.CallToolResult{Content: []sdk.Content{image}}, png},
		"file":       {sdk.CallToolResult{Content: []sdk.Content{pdf}}, []byte("%PDF-1")},
		"note":       {sdk.CallToolResult{Content: []sdk.Content{text, note}}, "a plot\na note"},
		"mixed":      {sdk.CallToolResult{Content: []sdk.Content{text, image, note, pdf}}, []any{"a plot", png, "a note", []byte("%PDF-1")}},
		"structured": {sdk.CallToolResult{Content: []sdk.Content{text, image}, StructuredContent: map[string]any{"a": []any{"iVBORw0KGgoA"}}}, map[string]any{"a": []any{png}, "content": "a plot"}},
		"next":       {sdk.CallToolResult{Content: []sdk.Content{text, image}, StructuredContent: map[string]any{"a": 1}}, map[string]any{"a": int64(1), "content": []any{"a plot", png}}},
		"text":       {sdk.CallToolResult{Content: []sdk.Content{text}, StructuredContent: map[string]any{"n": 5}}, map[string]any{"n": int64(5), "content": "a plot"}},
		"same text":  {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"n": 5, "a": [1]}`}}, StructuredContent: map[string]any{"a": []any{1}, "n": 5}}, map[string]any{"a": []any{int64(1)}, "n": int64(5)}},
		"parts":      {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "x"}, &sdk.TextContent{Text: "2"}}, StructuredContent: map[string]any{"result": []any{"x", 2}}}, map[string]any{"result": []any{"x", int64(2)}}},
		"a list":     {sdk.CallToolResult{Content: []sdk.Content{text}, StructuredContent: []any{1}}, map[string]any{"structuredContent": []any{int64(1)}, "content": "a plot"}},
		"taken":      {sdk.CallToolResult{Content: []sdk.Content{text}, StructuredContent: map[string]any{"content": 1}}, map[string]any{"content": int64(1)}},
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	for name, r := range results {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &r.CallToolResult, nil
		})
	}
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(server.Close) // after the client has disconnected
	declared := &spec.MCPTool{URL: server.URL, AllowPrivate: true}
	declared.ID = "files"
	found := tools(t, declared)
	for name, r := range results {
		got, err := found[name].Call(t.Context(), nil)
		if err != nil || !reflect.DeepEqual(value.ToGo(got), r.want) {
			t.Errorf("%s: got %#v, %v", name, value.ToGo(got), err)
		}
	}
}

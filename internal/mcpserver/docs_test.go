package mcpserver_test

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestDocs_Examples runs the calls on the page: a block "json call" is a call to the
// application of the page, "json assistant" one to the server for assistants, and the
// block "json result" after it the result.
func TestDocs_Examples(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/mcp.md")
	blocks := regexp.MustCompile("(?s)```(yaml|json call|json assistant|json result)\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 13 || blocks[0][1] != "yaml" {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", blocks[0][2]), qtype.WithEphemeral())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	clients := map[string]*sdk.ClientSession{
		"json call":      connect(t, serveHTTP(t, serveApp(t, app, mcpserver.ApplicationOptions{})), "", "2025-11-25", nil),
		"json assistant": connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2025-11-25", nil),
	}
	for i := 1; i+1 < len(blocks); i += 2 {
		s := clients[blocks[i][1]]
		if s == nil || blocks[i+1][1] != "json result" {
			t.Fatalf("block %d is %s, the next one %s", i, blocks[i][1], blocks[i+1][1])
		}
		params := &sdk.CallToolParams{}
		testkit.Must(t, json.Unmarshal([]byte(blocks[i][2]), params))
		r, err := s.CallTool(t.Context(), params)
		testkit.Must(t, err)
		raw, err := r.MarshalJSON()
		testkit.Must(t, err)
		var got, want any
		testkit.Must(t, json.Unmarshal(raw, &got))
		testkit.Must(t, json.Unmarshal([]byte(blocks[i+1][2]), &want))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s-want +got\n%s", blocks[i][2], diff)
		}
	}
}

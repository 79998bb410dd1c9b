package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/tool"
)

// patience is how long the desk waits for an answer of a client that may be gone: the SDK's server waits for its calls
// before it ends a session.
const patience = 5 * time.Second

// desk is an MCP server whose tools ask the client, and change each other.
func desk() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	text := func(format string, args ...any) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	sdk.AddTool(s, &sdk.Tool{Name: "think"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		answer, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 5, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "why"}}}}) //nolint:staticcheck // deprecated by the newest protocol; servers use it
		if err != nil {
			return nil, nil, err
		}
		return text("%s (%s)", answer.Content.(*sdk.TextContent).Text, answer.StopReason)
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		schema := map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}, "required": []string{"size"}}
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Which size?", RequestedSchema: schema})
		if err != nil {
			return nil, nil, err
		}
		return text("%s %v", answer.Action, answer.Content["size"])
	})
	s.AddResource(&sdk.Resource{URI: "config://shop", Name: "config"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "open until 6"}}}, nil
	})
	return s
}

const deskApplication = `id: app
models:
  - {type: Model, id: brief, provider: mock, rules: [{match: why, text: "because it is so", finish: length}, {after: tool, echo: true}, {tool_calls: [{name: read_config}]}]}
tools:
  - {type: MCPTool, id: thinker, url: URL, allow_private: true, tools: [think], sampling: {model: brief, max_tokens: 20}}
  - {type: MCPTool, id: desk, url: URL, allow_private: true, tools: [ask], elicitation: true}
  - {type: MCPTool, id: config, url: URL, allow_private: true, resources: ["config://shop"]}
flows:
  - id: think
    budget: {calls: BUDGET}
    variables: [{id: answer, type: text}]
    outputs: [answer]
    steps: [{type: InvokeTool, id: call_think, tool: thinker, output_bindings: {answer: answer}}]
  - id: ask
    variables: [{id: answer, type: text}]
    outputs: [answer]
    steps: [{type: InvokeTool, id: call_ask, tool: desk, output_bindings: {answer: answer}}]
  - id: read
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: Agent, id: call_read, model: brief, tools: [config], inputs: [question], outputs: [answer]}]
`

// runDesk runs a flow of the application and returns its answer.
func runDesk(t *testing.T, flow, budget string, clients func(string) tool.ClientHandler) (string, error) {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return desk() }, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	document := strings.NewReplacer("URL", server.URL, "BUDGET", budget).Replace(deskApplication)
	app, err := runtimetest.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document), runtime.Options{Clients: clients})
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(context.WithoutCancel(t.Context()))) }()
	given := map[string]any{}
	if flow == "read" {
		given["question"] = "when?"
	}
	var answer string
	for row, err := range app.Run(t.Context(), flow, slices.Values([]runtime.Input{runtime.Row(given)})) {
		if err != nil {
			return "", err
		}
		if row.Err != nil {
			return "", row.Err
		}
		for _, v := range row.Outputs() {
			answer, _ = v.(string)
		}
	}
	return answer, nil
}

func TestMCP_Sampling(t *testing.T) {
	if got, err := runDesk(t, "think", "10", nil); err != nil || got != "because it is so (maxTokens)" {
		t.Errorf("got %q, %v", got, err)
	}
	var over *runtime.BudgetError
	if got, err := runDesk(t, "think", "1", nil); !errors.As(err, &over) || over.What != "calls" {
		t.Errorf("over budget: %q, %v", got, err)
	}
}

func TestMCP_Elicitation(t *testing.T) {
	answer := func(_ context.Context, r tool.Request) (any, error) {
		if r.Tool.Description != "Which size?" || r.Caller.Step != "call_ask" {
			t.Errorf("the request is %+v", r)
		}
		return "42", nil
	}
	if got, err := runDesk(t, "ask", "1", func(string) tool.ClientHandler { return answer }); err != nil || got != "accept 42" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := runDesk(t, "ask", "1", nil); err != nil || got != "decline <nil>" {
		t.Errorf("without a handler: %q, %v", got, err)
	}
}

func TestMCP_ResourceOfAgent(t *testing.T) {
	if got, err := runDesk(t, "read", "1", nil); err != nil || !strings.Contains(got, "open until 6") {
		t.Errorf("got %q, %v", got, err)
	}
}

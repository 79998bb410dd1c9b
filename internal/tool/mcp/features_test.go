package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

func text(s string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: s}} }

// library is a server with resources and prompts.
func library() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, nil)
	s.AddResource(&sdk.Resource{URI: "config://shop", Name: "config", Description: "The settings"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: `{"open": true}`}}}, nil
	})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "page:///{name}{?part}", Name: "page"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		switch uri := r.Params.URI; {
		case strings.Contains(uri, "missing"):
			return nil, sdk.ResourceNotFoundError(uri)
		case strings.Contains(uri, "picture"):
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, Blob: []byte{0xff, 1}}}}, nil
		case strings.Contains(uri, "folder"):
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "a:1", Text: "one"}, {URI: "a:2", Text: "two"}}}, nil
		default:
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, Text: "at " + uri}}}, nil
		}
	})
	s.AddPrompt(&sdk.Prompt{Name: "review", Description: "Reviews code", Arguments: []*sdk.PromptArgument{{Name: "code", Description: "The code", Required: true}, {Name: "tone"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: "Review " + r.Params.Arguments["code"] + r.Params.Arguments["tone"]}},
				{Role: "user", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "a:b", Text: "the rules"}}},
			}}, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "links"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "See:"},
			&sdk.ResourceLink{URI: "page:///a", Name: "a", Description: "the first page"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "page:///b", Text: "second page"}},
		}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "file"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "a:f", Blob: []byte("bytes")}}}}, nil, nil
	})
	return s
}

func TestServer_ResourcesAndPrompts(t *testing.T) {
	protocols(t, func(t *testing.T, legacy bool) {
		h := newHost(t, legacy, library())
		found := named(t, connect(t, &spec.MCPTool{URL: h.URL, Resources: []string{"config://shop", "page:///{name}{?part}", "page:///{name}"},
			Prompts: []string{"review"}, Tools: []string{"links", "file"}}))
		if len(found) != 6 {
			t.Fatalf("the tools are %v", found)
		}
		page, review := found["read_page"].Info(), found["prompt_review"].Info()
		if page.ID != "shop/read_page" || page.Description != "Reads page:///{name}{?part}" || len(page.Inputs) != 2 || page.Inputs[0].Optional || !page.Inputs[1].Optional ||
			found["read_config"].Info().Description != "The settings" || len(found["read_config"].Info().Inputs) != 0 {
			t.Errorf("the resource is %+v", page)
		}
		if review.Description != "Reviews code" || len(review.Inputs) != 2 || review.Inputs[0].Optional || !review.Inputs[1].Optional || !strings.Contains(string(review.Parameters), "The code") {
			t.Errorf("the prompt is %+v %s", review, review.Parameters)
		}
		for _, c := range []struct {
			tool string
			args map[string]any
			want string
		}{
			{"read_config", nil, `"{\"open\": true}"`},
			{"read_page", map[string]any{"name": "a b/c"}, `"at page:///a%20b%2Fc"`},
			{"read_page", map[string]any{"name": "x", "part": 3}, `"at page:///x?part=3"`},
			{"read_shop", map[string]any{"name": "plain"}, `"at page:///plain"`},
			{"read_page", map[string]any{"name": "picture"}, `{"base64":"/wE="}`},
			{"read_page", map[string]any{"name": "folder"}, `[{"content":"one","uri":"a:1"},{"content":"two","uri":"a:2"}]`},
			{"read_page", map[string]any{"name": "missing"}, "error: tool shop/read_page: " + h.URL + ": Resource not found"},
			{"read_page", nil, "error: tool shop/read_page: argument name: is missing"},
			{"prompt_review", map[string]any{"code": "x=1"}, `"Review x=1\n\nthe rules"`},
			{"prompt_review", map[string]any{"code": "x=1", "tone": "!"}, `"Review x=1!\n\nthe rules"`},
			{"prompt_review", nil, "error: tool shop/prompt_review: argument code: is missing"},
			{"links", nil, `"See:\na: page:///a (the first page)\nsecond page"`},
			{"file", nil, `"bytes"`},
		} {
			if got := call(t, found[c.tool], c.args); got != c.want {
				t.Errorf("%s %v: got %s, want %s", c.tool, c.args, got, c.want)
			}
		}
	})
}

func TestServer_UnknownPrompt(t *testing.T) {
	h := newHost(t, false, library())
	want := `the server has no prompt "reviw"; it has review; did you mean "review"?`
	if _, err := connect(t, &spec.MCPTool{URL: h.URL, Prompts: []string{"reviw"}}).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := mcp.New(&spec.MCPTool{URL: h.URL, Resources: []string{"a:{b"}}, mcp.Env{Getenv: os.Getenv}); err == nil || !strings.Contains(err.Error(), "resource a:{b: ") {
		t.Errorf("an invalid template: %v", err)
	}
	plain, _ := counter()
	h.serve(plain)
	if _, err := connect(t, &spec.MCPTool{URL: h.URL, Resources: []string{"a:b"}}).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "the server has no resources") {
		t.Errorf("a server without resources: %v", err)
	}
}

// curious is a server whose tools make requests to the client. They end with the test: a client
// that has left does not answer, and its session waits for them.
func curious(t *testing.T) *sdk.Server {
	untilEnd := func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(t.Context(), cancel)
		return ctx, func() { stop(); cancel() }
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "curious", Version: "1"}, nil)
	type count struct {
		Times  int   `json:"times,omitempty"`
		Tokens int64 `json:"tokens,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "think"}, func(ctx context.Context, r *sdk.CallToolRequest, c count) (*sdk.CallToolResult, any, error) {
		ctx, end := untilEnd(ctx)
		defer end()
		var all []string
		for i := range max(c.Times, 1) {
			answer, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: c.Tokens, SystemPrompt: "Be brief.", //nolint:staticcheck // deprecated by the newest protocol; servers use it
				Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: fmt.Sprintf("question %d", i)}}}}) //nolint:staticcheck // deprecated by the newest protocol; servers use it
			if err != nil {
				return nil, nil, err
			}
			all = append(all, answer.Content.(*sdk.TextContent).Text+" "+answer.StopReason)
		}
		return &sdk.CallToolResult{Content: text(strings.Join(all, ", "))}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		ctx, end := untilEnd(ctx)
		defer end()
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Which size?", RequestedSchema: map[string]any{"type": "object",
			"properties": map[string]any{"size": map[string]any{"type": "string", "enum": []string{"small", "large"}}, "count": map[string]any{"type": "integer", "title": "How many"}}, "required": []string{"size"}}})
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: text(fmt.Sprint(answer.Action, " ", answer.Content["size"], " ", answer.Content["count"]))}, nil, nil
	})
	return s
}

// asking makes the tools of a curious server. Its protocol has sessions: a server of the
// other one cannot make requests.
func asking(t *testing.T, d *spec.MCPTool, env mcp.Env) map[string]tool.Tool {
	t.Helper()
	d.ID, d.URL, d.AllowPrivate, env.Getenv = "shop", newHost(t, true, curious(t)).URL, true, os.Getenv
	s, err := mcp.New(d, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return named(t, s)
}

type runKey struct{}

func TestServer_Sampling(t *testing.T) {
	var mu sync.Mutex
	var asked []mcp.SampleRequest
	var runs []any
	env := mcp.Env{Sample: func(ctx context.Context, r mcp.SampleRequest) (*mcp.Sample, error) {
		mu.Lock()
		defer mu.Unlock()
		asked, runs = append(asked, r), append(runs, ctx.Value(runKey{}))
		return &mcp.Sample{Text: "because", Model: "m-1", Truncated: r.MaxTokens < 10}, nil
	}}
	m := &spec.Model{ID: "m"}
	d := &spec.MCPTool{Sampling: &spec.Sampling{Model: spec.Ref[*spec.Model]{ID: "m", To: m}, MaxTokens: 100, MaxCalls: 2}}
	think := asking(t, d, env)["think"]
	if got := call(t, think, nil); got != `"because endTurn"` {
		t.Errorf("got %s", got)
	}
	if got := call(t, think, map[string]any{"times": 2, "tokens": 9}); got != `"because maxTokens, because maxTokens"` {
		t.Errorf("fewer tokens: %s", got)
	}
	if r := asked[0]; r.Model != m || r.MaxTokens != 100 || len(r.Messages) != 2 || r.Messages[0].Role != chat.System || r.Messages[1].Text() != "question 0" || asked[1].MaxTokens != 9 {
		t.Errorf("the requests are %+v", asked)
	}
	if got := call(t, think, map[string]any{"times": 3}); !strings.Contains(got, "the limit of 2 calls of the model for one call of a tool is reached (max_calls)") {
		t.Errorf("more calls: %s", got)
	}
	// Requests belong to the call that is made, also if several are made at the same time.
	mu.Lock()
	runs = nil
	mu.Unlock()
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			if _, err := think.Call(context.WithValue(t.Context(), runKey{}, i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	seen := map[any]bool{}
	for _, r := range runs {
		seen[r] = true
	}
	if len(seen) != 4 || seen[nil] {
		t.Errorf("the requests came from the runs %v", runs)
	}
	failing := asking(t, d, mcp.Env{Sample: func(context.Context, mcp.SampleRequest) (*mcp.Sample, error) { return nil, errors.New("no\nmoney") }})
	if got := call(t, failing["think"], nil); !strings.Contains(got, "no money") {
		t.Errorf("a failing model: %s", got)
	}
}

func TestServer_Elicitation(t *testing.T) {
	var got tool.Request
	env := mcp.Env{Ask: func(_ context.Context, r tool.Request) (any, error) {
		got = r
		return map[string]any{"size": "large", "count": int64(2)}, nil
	}}
	ask := asking(t, &spec.MCPTool{Elicitation: true}, env)["ask"]
	ctx := tool.WithCaller(t.Context(), tool.Caller{Step: "order", Session: "me"})
	if v, err := ask.Call(ctx, nil); err != nil || v != "accept large 2" {
		t.Errorf("got %v, %v", v, err)
	}
	if got.Tool.ID != "shop" || got.Caller.Step != "order" || got.Tool.Description != "Which size? [count: How many] [size: one of small, large]" || string(got.Args) != `{"message":"Which size?"}` || len(got.Outputs) != 2 {
		t.Errorf("the request is %+v %s", got, got.Args)
	}
	for name, answer := range map[string]func(context.Context, tool.Request) (any, error){
		"absent": func(context.Context, tool.Request) (any, error) { return nil, errors.New("no handler") },
		"late":   func(ctx context.Context, _ tool.Request) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		d := &spec.MCPTool{Elicitation: true, Timeout: spec.Duration(300 * time.Millisecond)}
		got := call(t, asking(t, d, mcp.Env{Ask: answer})["ask"], nil)
		if name == "absent" && got != `"decline <nil> <nil>"` || name == "late" && !strings.Contains(got, "timed out after 300ms") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestServer_UndeclaredRequests(t *testing.T) {
	found := asking(t, &spec.MCPTool{}, mcp.Env{})
	for name, want := range map[string]string{
		"think": "the MCPTool shop has no sampling",
		"ask":   "client does not support",
	} {
		if got := call(t, found[name], nil); !strings.HasPrefix(got, "error: tool shop/"+name) || !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

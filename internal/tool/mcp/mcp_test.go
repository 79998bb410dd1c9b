package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

// TestMain runs the tests, or the server that they start as a program.
func TestMain(m *testing.M) {
	if os.Getenv("QTYPE_TEST_SERVER") != "" {
		if os.Getenv("QTYPE_TEST_NOISE") != "" {
			os.Stdout.WriteString("Starting \x1b[1mserver\nDEBUG: loaded\n")
		}
		if err := shop().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

type order struct {
	Number int    `json:"number" jsonschema:"the order's number"`
	Note   string `json:"note,omitempty"`
}

type state struct {
	Status string `json:"status"`
	Number int    `json:"number"`
}

// shop is a server with four tools.
func shop() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "find", Description: "Finds an order"}, func(_ context.Context, _ *sdk.CallToolRequest, o order) (*sdk.CallToolResult, state, error) {
		if o.Number < 0 {
			return nil, state{}, errors.New("there is no such\norder")
		}
		return nil, state{"sent" + o.Note, o.Number}, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env", Description: "Returns an environment variable"}, func(_ context.Context, _ *sdk.CallToolRequest, o order) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: os.Getenv(o.Note) + "."}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		os.Stderr.WriteString("out of memory\ngoing down\n")
		os.Exit(3)
		return nil, nil, nil
	})
	return s
}

// program declares the test program as a server.
func program(t *testing.T, names ...string) *spec.MCPTool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &spec.MCPTool{Command: self, Tools: names, Env: map[string]spec.Secret{"QTYPE_TEST_SERVER": spec.NewSecret("1"), "KEY": spec.NewSecret("k-1")}}
	d.ID = "shop"
	return d
}

func tools(t *testing.T, d *spec.MCPTool) map[string]tool.Tool {
	t.Helper()
	s, err := mcp.New(d, mcp.Env{Getenv: os.Getenv, Folder: "."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	list, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]tool.Tool{}
	for _, one := range list {
		found[one.Info().Name] = one
	}
	return found
}

func call(t *testing.T, one tool.Tool, args map[string]any) string {
	t.Helper()
	v, err := one.Call(t.Context(), args)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(value.JSON(v))
}

func TestServer_Program(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	d := program(t)
	d.Timeout = spec.Duration(time.Hour)
	found := tools(t, d)
	find := found["find"]
	if len(found) != 4 || find == nil {
		t.Fatalf("the tools are %v", found)
	}
	info := find.Info()
	if info.ID != "shop/find" || info.Set != "shop" || info.Description != "Finds an order" || len(info.Inputs) != 2 ||
		info.Inputs[0].ID != "number" && info.Inputs[1].ID != "number" || !strings.Contains(string(info.Parameters), "the order's number") {
		t.Errorf("the tool is %+v, %s", info, info.Parameters)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"find", map[string]any{"number": int64(7)}, `{"number":7,"status":"sent"}`},
		{"find", map[string]any{"number": 7, "note": " now"}, `{"number":7,"status":"sent now"}`},
		{"find", map[string]any{"number": -1}, "error: tool shop/find: there is no such order"},
		{"find", map[string]any{}, "error: tool shop/find: argument number: is missing"},
		{"find", map[string]any{"number": 1, "colour": 2}, "error: tool shop/find: argument colour: is not an argument of this tool"},
		{"find", map[string]any{"number": "many"}, "error: tool shop/find: "},
		{"env", map[string]any{"number": 1, "note": "KEY"}, `"k-1."`},
		{"env", map[string]any{"number": 1, "note": "OPENAI_API_KEY"}, `"."`},
	} {
		if got := call(t, found[c.tool], c.args); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s %v: got %s, want %s", c.tool, c.args, got, c.want)
		}
	}
	if got := call(t, found["die"], nil); !strings.HasPrefix(got, "error: tool shop/die: ") || !strings.Contains(got, "the program ended with exit status 3; its last lines: out of memory | going down") {
		t.Errorf("a server that dies: %s", got)
	}
	if got := call(t, find, map[string]any{"number": 8}); got != `{"number":8,"status":"sent"}` {
		t.Errorf("after the server has died: %s", got)
	}
}

// TestServer_Noise: lines that a program prints between messages are named once, and the server works.
func TestServer_Noise(t *testing.T) {
	d := program(t)
	d.Env["QTYPE_TEST_NOISE"], d.Prefix = spec.NewSecret("1"), "first_"
	var warnings []string
	s, err := mcp.New(d, mcp.Env{Getenv: os.Getenv, Folder: ".", Warn: func(text string) { warnings = append(warnings, text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(one tool.Tool) bool { return one.Info().Name == "first_find" && one.Info().ID == "shop/find" })
	if i < 0 {
		t.Fatalf("no tool has the prefix: %+v", list)
	}
	if got := call(t, list[i], map[string]any{"number": 8}); got != `{"number":8,"status":"sent"}` {
		t.Errorf("got %s", got)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "tool shop: the program wrote to its standard output") || !strings.Contains(warnings[0], "Starting") || strings.ContainsAny(warnings[0], "\x1b\n") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestServer_AllowedTools(t *testing.T) {
	if found := tools(t, program(t, "env")); len(found) != 1 || found["env"] == nil {
		t.Errorf("the tools are %v", found)
	}
	s, err := mcp.New(program(t, "fnid"), mcp.Env{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), `tool shop: the server has no tool "fnid"; it has `) {
		t.Errorf("got %v", err)
	}
}

func TestServer_Failures(t *testing.T) {
	d := program(t)
	d.Timeout = spec.Duration(time.Hour)
	found := tools(t, d)
	works := func(found map[string]tool.Tool) {
		t.Helper()
		if got := call(t, found["find"], map[string]any{"number": 1}); !strings.HasPrefix(got, `{"number"`) {
			t.Errorf("afterwards: %s", got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := found["hang"].Call(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	works(found)
	// A server in the process: the timeout does not include the start of a program.
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop() }, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close) // after the client has disconnected
	late := &spec.MCPTool{URL: server.URL, AllowPrivate: true, Timeout: spec.Duration(2 * time.Second)}
	late.ID = "shop"
	found = tools(t, late)
	if got := call(t, found["hang"], nil); !strings.Contains(got, "timed out after 2s") {
		t.Errorf("late: %s", got)
	}
	works(found)
	none := &spec.MCPTool{Command: "/bin/false"}
	none.ID = "none"
	s, err := mcp.New(none, mcp.Env{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Tools(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "tool none: /bin/false: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a program that is not a server: %v", err)
	}
}

func TestServer_URL(t *testing.T) {
	var key string
	handler := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server { return shop() }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close) // after the client has disconnected
	token := &spec.BearerTokenAuth{Token: spec.NewSecret("t-9")}
	d := &spec.MCPTool{URL: server.URL, AllowPrivate: true, Auth: spec.Ref[spec.Auth]{ID: "key", To: token}}
	d.ID = "shop"
	found := tools(t, d)
	if got := call(t, found["find"], map[string]any{"number": 7}); got != `{"number":7,"status":"sent"}` || key != "Bearer t-9" {
		t.Errorf("got %s with %q", got, key)
	}
	d.AllowPrivate = false
	s, err := mcp.New(d, mcp.Env{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("a private address: %v", err)
	}
}

func TestServerTool_Contract(t *testing.T) {
	d := program(t, "find")
	d.Timeout = spec.Duration(time.Hour)
	tooltest.Run(t, tooltest.Case{Tool: tools(t, d)["find"], Args: map[string]any{"number": 7}, Failing: map[string]any{"number": -1}})
}

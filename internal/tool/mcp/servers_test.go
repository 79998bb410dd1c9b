package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// official declares a server made with an official SDK: started as a program, or listening.
func official(t *testing.T, program, script string, config map[string]any, listens bool) *spec.MCPTool {
	t.Helper()
	config["http"] = listens
	raw, err := json.Marshal(config)
	testkit.Must(t, err)
	d := &spec.MCPTool{Timeout: spec.Duration(time.Minute)}
	d.ID = "shop"
	if !listens {
		d.Command, d.Args = program, []string{script, string(raw)}
		return d
	}
	cmd := testkit.Command(t, program, script, string(raw))
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	var port int
	_, err = fmt.Sscanf(line, "listening %d", &port)
	testkit.Must(t, err)
	d.URL, d.AllowPrivate = fmt.Sprintf("http://127.0.0.1:%d/mcp", port), true
	return d
}

// useOfficial calls everything that the servers of testdata have.
func useOfficial(t *testing.T, d *spec.MCPTool) *mcp.Server {
	d.Tools = []string{"add", "change", "think", "ask"}
	d.Resources, d.Prompts = []string{"config://shop", "page://book/{name}"}, []string{"review"}
	d.Sampling, d.Elicitation = &spec.Sampling{Model: spec.Ref[*spec.Model]{ID: "m", To: &spec.Model{ID: "m"}}}, true
	s, err := mcp.New(d, mcp.Env{Getenv: os.Getenv, Folder: ".", Retry: quickly,
		Sample: func(context.Context, mcp.SampleRequest) (*mcp.Sample, error) {
			return &mcp.Sample{Text: "because"}, nil
		},
		Ask: func(context.Context, tool.Request) (any, error) { return map[string]any{"size": "large"}, nil }})
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	found := named(t, s)
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"add", map[string]any{"a": 1, "b": 2}, `3`},
		{"read_config", nil, `open`},
		{"read_page", map[string]any{"name": "a-b"}, `page a-b`},
		{"prompt_review", map[string]any{"code": "x=1"}, `Review x=1`},
		{"think", nil, `because`},
		{"ask", nil, `accept large`},
	} {
		if found[c.tool] == nil {
			t.Errorf("there is no tool %s", c.tool)
			continue
		}
		if got := call(t, found[c.tool], c.args); strings.Trim(strings.TrimPrefix(got, `{"result":`), `"}`) != c.want {
			t.Errorf("%s: got %s, want %s", c.tool, got, c.want)
		}
	}
	return s
}

// changesTools makes a server change its tools, and waits until the change is known.
func changesTools(t *testing.T, d *spec.MCPTool) {
	t.Helper()
	all := *d
	all.Tools, all.Resources, all.Prompts = nil, nil, nil
	s, err := mcp.New(&all, mcp.Env{Getenv: os.Getenv, Folder: ".", Retry: quickly})
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	found := named(t, s)
	old, before := found["old"], s.Revision()
	if got := call(t, old, nil); strings.Trim(strings.TrimPrefix(got, `{"result":`), `"}`) != "old" {
		t.Errorf("before the change: %s", got)
	}
	call(t, found["change"], nil)
	eventually(t, "the announcement of the change", func() bool { return s.Revision() != before })
	if got := call(t, old, nil); !strings.HasSuffix(got, `; did you mean "olds"?`) {
		t.Errorf("the removed tool: %s", got)
	}
	olds := named(t, s)["olds"]
	if olds == nil {
		t.Fatal("the new tool is not known")
	}
	if got := call(t, olds, map[string]any{"word": "new"}); !strings.Contains(got, "new") {
		t.Errorf("the new tool: %s", got)
	}
}

// TestNodeServer uses a server made with the official SDK for Node.
func TestNodeServer(t *testing.T) {
	modules := testkit.External(t, "QTYPE_MCP_NODE", "a node_modules folder with @modelcontextprotocol/sdk")
	for _, listens := range []bool{false, true} {
		t.Run(fmt.Sprintf("http=%v", listens), func(t *testing.T) {
			d := official(t, "node", "testdata/server.mjs", map[string]any{"modules": modules}, listens)
			s := useOfficial(t, d)
			changesTools(t, d)
			if !listens {
				return
			}
			add := named(t, s)["add"]
			resp, err := http.Get(strings.TrimSuffix(d.URL, "mcp") + "forget")
			testkit.Must(t, err)
			testkit.Must(t, resp.Body.Close())
			if got := call(t, add, map[string]any{"a": 1, "b": 2}); got != `"3"` {
				t.Errorf("after the server has forgotten its sessions: %s", got)
			}
		})
	}
}

// TestPythonServer uses a server made with the official SDK for Python.
func TestPythonServer(t *testing.T) {
	python := testkit.External(t, "QTYPE_MCP_PYTHON", "a Python interpreter with the package mcp")
	for _, listens := range []bool{false, true} {
		t.Run(fmt.Sprintf("http=%v", listens), func(t *testing.T) {
			d := official(t, python, "testdata/server.py", map[string]any{}, listens)
			useOfficial(t, d)
			changesTools(t, d)
		})
	}
}

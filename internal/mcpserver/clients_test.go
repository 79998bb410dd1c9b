package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// buildFolder is the temporary folder of the command; empty until it was built.
var buildFolder string

// built is the command that QTYPE_PROGRAM names, or one that is built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("QTYPE_PROGRAM"); given != "" {
		return given, nil
	}
	folder, err := os.MkdirTemp("", "qtype-mcp")
	if err != nil {
		return "", err
	}
	buildFolder = folder
	path := filepath.Join(folder, "qtype")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/qtype-dev/qtype/cmd/qtype").CombinedOutput()
	if err != nil {
		return "", &buildError{string(out), err}
	}
	return path, nil
})

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() + ": " + e.output }

// qtypeCommand returns the path of the command.
func qtypeCommand(t *testing.T) string {
	t.Helper()
	path, err := built()
	testkit.Must(t, err)
	return path
}

// startHTTP starts qtype mcp over HTTP and returns the address of its endpoint.
func startHTTP(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, qtypeCommand(t), append([]string{"mcp", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	errs, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("the server ended with %v", err)
		}
	})
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		if _, address, ok := strings.Cut(lines.Text(), "MCP server: "); ok {
			return address
		}
	}
	t.Fatal("the server did not start")
	return ""
}

// overTransports runs a test over standard input and output, and over HTTP. The
// configuration has command and args, or url.
func overTransports(t *testing.T, args []string, test func(t *testing.T, config map[string]any)) {
	t.Run("stdio", func(t *testing.T) {
		test(t, map[string]any{"command": qtypeCommand(t), "args": append([]string{"mcp"}, args...)})
	})
	t.Run("http", func(t *testing.T) { test(t, map[string]any{"url": startHTTP(t, args...)}) })
}

var appArgs = []string{"--app", "testdata/app.qtype.yaml", "--ephemeral"}

// runScript runs a script of testdata with a configuration.
func runScript(t *testing.T, program, script string, configs ...map[string]any) {
	t.Helper()
	config := map[string]any{}
	for _, c := range configs {
		maps.Copy(config, c)
	}
	raw, err := json.Marshal(config)
	testkit.Must(t, err)
	out, err := testkit.Command(t, program, script, string(raw)).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}

// assistantCalls are arguments for every tool of the server for assistants.
func assistantCalls() map[string]any {
	flow := "id: x\nflows: [{id: f, variables: [{id: a, type: text}], inputs: [a], outputs: [a], steps: [{type: Echo, id: e, inputs: [a], outputs: [a]}]}]\n"
	return map[string]any{
		"validate_qtype_yaml": object{"yaml_content": "id: [\n"}, "visualize_qtype_architecture": object{"yaml_content": flow},
		"diff": object{"before": flow, "after": "id: x\n"}, "explain": object{"code": "QT001"},
		"list_components": object{}, "get_component_schema": object{"component_name": "Flow"},
		"list_documentation": object{}, "get_documentation": object{"file_path": "mcp.md"},
		"list_examples": object{}, "get_example": object{"file_path": "chat/app.qtype.yaml"},
		"search_library":       object{"query": "session of a memory"},
		"convert_api_to_tools": object{"api_spec": "pets.yaml"}, "convert_python_to_tools": object{"module_path": "shop"},
	}
}

// TestPythonClient uses the server with the official client for Python, with both
// generations of the protocol.
func TestPythonClient(t *testing.T) {
	python := testkit.External(t, "QTYPE_MCP_PYTHON", "a Python interpreter with the package mcp")
	for mode, version := range map[string]string{"legacy": "2025-11-25", "auto": "2026-07-28"} {
		t.Run(mode, func(t *testing.T) {
			overTransports(t, appArgs, func(t *testing.T, config map[string]any) {
				runScript(t, python, "testdata/client.py", config, map[string]any{"mode": mode, "version": version})
			})
			overTransports(t, []string{"--dir", "testdata/library"}, func(t *testing.T, config map[string]any) {
				runScript(t, python, "testdata/assistant.py", config, map[string]any{"mode": mode, "calls": assistantCalls()})
			})
		})
	}
}

// TestNodeClient uses the server with both official clients for Node.
func TestNodeClient(t *testing.T) {
	modules := testkit.External(t, "QTYPE_MCP_NODE", "a node_modules folder with @modelcontextprotocol/sdk, client and inspector")
	for name, version := range map[string]string{"sdk": "2025-11-25", "client": "2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			overTransports(t, appArgs, func(t *testing.T, config map[string]any) {
				runScript(t, "node", "testdata/client.mjs", config, map[string]any{"package": name, "version": version, "modules": modules})
			})
			overTransports(t, []string{"--dir", "testdata/library"}, func(t *testing.T, config map[string]any) {
				runScript(t, "node", "testdata/assistant.mjs", config, map[string]any{"package": name, "version": version, "modules": modules, "calls": assistantCalls()})
			})
		})
	}
}

// inspect runs the Inspector's command line and returns the JSON that it prints.
func inspect(t *testing.T, modules string, config map[string]any, args ...string) map[string]any {
	t.Helper()
	all := []string{filepath.Join(modules, ".bin", "mcp-inspector"), "--cli"}
	if url, ok := config["url"].(string); ok {
		all = append(all, url, "--transport", "http")
	} else {
		all = append(append(all, config["command"].(string)), config["args"].([]string)...)
	}
	cmd := testkit.Command(t, "node", append(all, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v\n%s%s", args, err, out, errs.String())
	}
	var result map[string]any
	if err := json.Unmarshal(out, &result); err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
	return result
}

// TestInspector uses both servers with the command line of the MCP Inspector, which
// also checks that the schemas are portable.
func TestInspector(t *testing.T) {
	modules := testkit.External(t, "QTYPE_MCP_NODE", "a node_modules folder with @modelcontextprotocol/sdk, client and inspector")
	t.Run("application", func(t *testing.T) {
		overTransports(t, appArgs, func(t *testing.T, config map[string]any) {
			if got := inspect(t, modules, config, "--method", "tools/list", "--strict"); len(list(got["tools"])) != 6 {
				t.Errorf("got %v", got)
			}
			got := inspect(t, modules, config, "--method", "tools/call", "--tool-name", "pay_back", "--tool-arg", "order=7")
			if s, _ := got["structuredContent"].(map[string]any); s["receipt"] != "R    7" {
				t.Errorf("got %v", got)
			}
			if got := inspect(t, modules, config, "--method", "prompts/list"); len(list(got["prompts"])) != 2 {
				t.Errorf("got %v", got)
			}
			if got := inspect(t, modules, config, "--method", "resources/templates/list"); len(list(got["resourceTemplates"])) != 1 {
				t.Errorf("got %v", got)
			}
		})
	})
	t.Run("assistant", func(t *testing.T) {
		overTransports(t, nil, func(t *testing.T, config map[string]any) {
			if got := inspect(t, modules, config, "--method", "tools/list", "--strict"); len(list(got["tools"])) != 13 {
				t.Errorf("got %v", got)
			}
			got := inspect(t, modules, config, "--method", "tools/call", "--tool-name", "explain", "--tool-arg", "code=QT202")
			if s, _ := got["structuredContent"].(map[string]any); s == nil || !strings.HasPrefix(s["result"].(string), "QT202 (error): ") {
				t.Errorf("got %v", got)
			}
		})
	})
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

package lsp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
)

// buildDir returns the folder of the program that the tests build.
func buildDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("qtype-lsp-test-%d", os.Getpid()))
}

// buildCommand returns the program that QTYPE_PROGRAM names, or builds it once.
var buildCommand = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("QTYPE_PROGRAM"); given != "" {
		return given, nil
	}
	path := filepath.Join(buildDir(), "qtype")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "../../cmd/qtype").CombinedOutput()
	if err != nil {
		return "", &buildError{string(out)}
	}
	return path, nil
})

type buildError struct{ text string }

func (e *buildError) Error() string { return "build the command: " + e.text }

func buildQtype(t *testing.T) string {
	t.Helper()
	path, err := buildCommand()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCommand runs the program and talks to it over standard input and output.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		end  []string // the last messages of the editor
		exit int
	}{
		{"shutdown and exit", []string{"lsp"}, []string{"shutdown", "exit"}, 0},
		{"as client libraries start it", []string{"lsp", "--stdio"}, []string{"shutdown", "exit"}, 0},
		{"exit alone", []string{"lsp"}, []string{"exit"}, 1},
		{"the stream ends", []string{"lsp"}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := buildQtype(t) // outside the timeout
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			server := exec.CommandContext(ctx, program, c.args...)
			server.Dir = t.TempDir()
			streams := lsptest.Start(t, server)
			e := &editor{t: t, dir: tempDir(t), published: make(chan publishedDiagnostics, 100), serverRequests: make(chan string, 10), versions: map[string]int{}, texts: map[string]string{}}
			e.conn = jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(streams, jsonrpc2.VSCodeObjectCodec{}), jsonrpc2.HandlerWithError(e.handle), jsonrpc2.SetLogger(silent{}))
			e.call("initialize", map[string]any{"rootUri": "file://" + e.dir, "capabilities": map[string]any{}}, nil)
			e.notify("initialized", map[string]any{})
			e.open(app, shopWith(t, "memory: chat_memory", "memory: chat_memry"))
			if found := e.diagnostics(app); !strings.Contains(codesOf(found), "QT202") {
				t.Errorf("found %v", found)
			}
			for _, method := range c.end {
				if method == "exit" {
					e.notify("exit", nil)
					continue
				}
				e.call(method, nil, nil)
			}
			if len(c.end) == 0 {
				_ = streams.Close()
			}
			<-e.conn.DisconnectNotify()
			_ = server.Wait()
			if got := server.ProcessState.ExitCode(); got != c.exit {
				t.Errorf("exit status %d, want %d", got, c.exit)
			}
		})
	}
}

// TestClientLibrary drives the program with the client library of editors.
func TestClientLibrary(t *testing.T) {
	libraries := os.Getenv("QTYPE_LSP_CLIENT")
	if libraries == "" {
		t.Skip("SKIPPED: set QTYPE_LSP_CLIENT to a node_modules folder with vscode-languageserver-protocol, as .ci/run does.")
	}
	dir := tempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "memories.yaml"), []byte("- id: chat_memory\n  token_limit: 20000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := buildQtype(t) // outside the timeout
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, "node", "testdata/client.cjs", program, dir)
	client.Env = append(os.Environ(), "NODE_PATH="+libraries)
	out, err := client.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || strings.Count(string(out), "ok ") != 15 {
		t.Errorf("the client ended with %v", err)
	}
}

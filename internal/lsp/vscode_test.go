package lsp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExtension runs the extension of Visual Studio Code with its client library
// and the program; a script provides the editor's module. It checks that the
// extension shows diagnostics, can restart the server, and reports a program that
// does not exist.
func TestExtension(t *testing.T) {
	libraries := os.Getenv("QTYPE_LSP_CLIENT")
	if _, err := os.Stat(filepath.Join(libraries, "vscode-languageclient")); libraries == "" || err != nil {
		t.Skip("SKIPPED: set QTYPE_LSP_CLIENT to a node_modules folder with vscode-languageclient, as .ci/run does")
	}
	document := filepath.Join(tempDir(t), "app.qtype.yaml")
	if err := os.WriteFile(document, []byte("id: shop\nmodles: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	extension, err := filepath.Abs("../../editors/vscode/extension.js")
	if err != nil {
		t.Fatal(err)
	}
	program := buildQtype(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	host := exec.CommandContext(ctx, "node", "testdata/vscode.cjs", extension, program, document)
	host.Env = append(os.Environ(), "NODE_PATH="+libraries)
	host.Stderr = os.Stderr
	out, err := host.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var shown struct {
		First []struct {
			URI  string
			List []struct {
				Line          int
				Message, Code string
			}
		}
		Providers, Errors []string
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(shown.First) != 1 || len(shown.First[0].List) != 1 || shown.First[0].List[0].Code != "QT103" || shown.First[0].List[0].Line != 1 {
		t.Errorf("shown: %+v", shown.First)
	}
	for _, want := range []string{"CompletionItem", "Definition", "Hover", "Rename", "DocumentFormattingEdit", "DocumentSemanticTokens"} {
		if !slices.Contains(shown.Providers, "register"+want+"Provider") {
			t.Errorf("no provider for %s was registered", want)
		}
	}
	messages := strings.Join(shown.Errors, "\n")
	if !strings.Contains(messages, `cannot start "/no/such/qtype lsp"`) || !strings.Contains(messages, "ENOENT") || strings.Contains(messages, "undefined") {
		t.Errorf("without a program: %q", messages)
	}
}

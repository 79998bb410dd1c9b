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

// TestExtension runs the extension of Visual Studio Code with the real client
// library and the real program; a script plays the editor's own module. It starts,
// shows a fault, starts anew, and says what is wrong where there is not a program.
func TestExtension(t *testing.T) {
	libraries := os.Getenv("QTYPE_LSP_CLIENT")
	if _, err := os.Stat(filepath.Join(libraries, "vscode-languageclient")); libraries == "" || err != nil {
		t.Skip("SKIPPED, NOT TESTED: QTYPE_LSP_CLIENT names no node_modules folder with vscode-languageclient; .ci/run does")
	}
	document := filepath.Join(realDir(t), "app.qtype.yaml")
	if err := os.WriteFile(document, []byte("id: shop\nmodles: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	extension, err := filepath.Abs("../../editors/vscode/extension.js")
	if err != nil {
		t.Fatal(err)
	}
	program := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	host := exec.CommandContext(ctx, "node", "testdata/vscode.cjs", extension, program, document)
	host.Env = append(os.Environ(), "NODE_PATH="+libraries)
	host.Stderr = os.Stderr
	out, err := host.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var told struct {
		First []struct {
			URI  string
			List []struct {
				Line          int
				Message, Code string
			}
		}
		Providers, Errors []string
	}
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(told.First) != 1 || len(told.First[0].List) != 1 || told.First[0].List[0].Code != "QT103" || told.First[0].List[0].Line != 1 {
		t.Errorf("shown: %+v", told.First)
	}
	for _, want := range []string{"CompletionItem", "Definition", "Hover", "Rename", "DocumentFormattingEdit", "DocumentSemanticTokens"} {
		if !slices.Contains(told.Providers, "register"+want+"Provider") {
			t.Errorf("the editor was given no %s", want)
		}
	}
	said := strings.Join(told.Errors, "\n")
	if !strings.Contains(said, `cannot start "/no/such/qtype lsp"`) || !strings.Contains(said, "ENOENT") || strings.Contains(said, "undefined") {
		t.Errorf("without a program it said %q", said)
	}
}

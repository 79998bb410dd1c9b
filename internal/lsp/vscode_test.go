package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
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
	folder := tempDir(t)
	files := map[string]string{"app.qtype.yaml": "id: shop\nmodles: []\n", "chat.qtype.yaml": shopDocument,
		"chat.qtype-test.yaml": "tests:\n  - {name: a, flow: tlak, turns: [{input: x}]}\n"}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		documents = append(documents, filepath.Join(folder, name))
		testkit.Must(t, os.WriteFile(documents[len(documents)-1], []byte(files[name]), 0o600))
	}
	extension, err := filepath.Abs("../../editors/vscode/extension.js")
	if err != nil {
		t.Fatal(err)
	}
	program := buildQtype(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	host := exec.CommandContext(ctx, "node", append([]string{"testdata/vscode.cjs", extension, program}, documents...)...)
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
		Started           []struct {
			Program, Cwd string
			Args         []string
		}
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for _, document := range shown.First {
		for _, d := range document.List {
			got[filepath.Base(document.URI)] += fmt.Sprintf("%s:%d ", d.Code, d.Line)
		}
	}
	if want := map[string]string{"app.qtype.yaml": "QT103:1 ", "chat.qtype-test.yaml": "QT801:1 ", "chat.qtype.yaml": "QT915:11 QT915:21 "}; !maps.Equal(got, want) {
		t.Errorf("shown %v, want %v; %+v", got, want, shown.First)
	}
	for _, want := range []string{"CompletionItem", "Definition", "Hover", "Rename", "CodeLens", "InlayHints", "DocumentFormattingEdit", "DocumentSemanticTokens"} {
		if !slices.Contains(shown.Providers, "register"+want+"Provider") {
			t.Errorf("no provider for %s was registered", want)
		}
	}
	if got, want := fmt.Sprint(shown.Started), fmt.Sprintf(`[{%s /tmp [run a.yaml -i {"who":"Ada","n":[1]}]}]`, program); got != want {
		t.Errorf("started %s, want %s", got, want)
	}
	messages := strings.Join(shown.Errors, "\n")
	if !strings.Contains(messages, `cannot start "/no/such/qtype lsp"`) || !strings.Contains(messages, "ENOENT") || strings.Contains(messages, "undefined") {
		t.Errorf("without a program: %q", messages)
	}
}

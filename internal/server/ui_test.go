package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/transcript"
)

// TestUI_Browser uses the web interface in a browser: conversations with tools and
// approvals, flushed messages, forms, a batch, the graph and the trace of a run.
func TestUI_Browser(t *testing.T) {
	modules := os.Getenv("QTYPE_UI_MODULES")
	if _, err := os.Stat(filepath.Join(modules, "playwright-core")); modules == "" || err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatal("QTYPE_UI_MODULES has no packages of the web interface")
		}
		t.Skip("SKIPPED: set QTYPE_UI_MODULES to a node_modules folder made by npm ci with internal/server/ui/package-lock.json, as .ci/run does")
	}
	t.Setenv("RULES_INDEX", filepath.Join(t.TempDir(), "rules.db"))
	app := openApp(t, "ui/test/app/app.qtype.yaml")
	var long strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&long, "{\"role\":\"user\",\"content\":\"Question %d?\"}\n{\"role\":\"assistant\",\"content\":\"Answer %[1]d.\"}\n", i+1)
	}
	testkit.Must(t, transcript.Import(t.Context(), app.Memory("desk"), "long", strings.NewReader(long.String())))
	s := serveApp(t, app, server.Options{})
	browser := testkit.Command(t, "sh", "ui/test/stage.sh", "playwright", "test")
	browser.Env = append(os.Environ(), "QTYPE_UI_URL="+s.URL)
	if out, err := testkit.Output(t, browser); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

package ui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// stage runs a command in a copy of the sources, with the packages of QTYPE_UI_MODULES.
func stage(t *testing.T, args ...string) {
	t.Helper()
	modules := os.Getenv("QTYPE_UI_MODULES")
	if _, err := os.Stat(filepath.Join(modules, "vite")); modules == "" || err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatal("QTYPE_UI_MODULES has no packages of the web interface")
		}
		t.Skip("SKIPPED: set QTYPE_UI_MODULES to a node_modules folder made by npm ci with package-lock.json, as .ci/run does")
	}
	out, err := testkit.Output(t, testkit.Command(t, "sh", args...))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// The committed build is that of the sources.
func TestBuild_Current(t *testing.T) {
	stage(t, "test/check-dist.sh")
}

// The logic of the pages: forms, files of rows, streams, transcripts.
func TestBuild_Logic(t *testing.T) {
	stage(t, "test/stage.sh", "vitest", "run")
}

// All pages in a browser, with a server that has canned answers.
func TestBuild_Browser(t *testing.T) {
	stage(t, "test/stage.sh", "playwright", "test")
}

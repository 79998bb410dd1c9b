package web_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// stage runs a command in a copy of the sources, with the packages of QTYPE_PLAYGROUND_MODULES.
func stage(t *testing.T, args ...string) {
	t.Helper()
	need(t, "QTYPE_PLAYGROUND_MODULES", "esbuild", "a node_modules folder made by npm ci with package-lock.json, as .ci/run does")
	out, err := testkit.Output(t, testkit.Command(t, "sh", append([]string{"test/stage.sh"}, args...)...))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// need skips the test if an environment variable is not a folder with a file; in the step
// playground of .ci/run it fails.
func need(t *testing.T, name, file, what string) {
	t.Helper()
	folder := os.Getenv(name)
	if _, err := os.Stat(filepath.Join(folder, file)); folder != "" && err == nil {
		return
	}
	if os.Getenv("QTYPE_CI_PLAYGROUND") != "" {
		t.Fatalf("%s has no %s", name, file)
	}
	t.Skipf("SKIPPED: set %s to %s", name, what)
}

// The committed build is that of the sources.
func TestBuild_Current(t *testing.T) {
	stage(t, "sh", "test/check-dist.sh")
}

// The page in a browser. QTYPE_PLAYGROUND is the folder that make playground wrote.
func TestBuild_Browser(t *testing.T) {
	need(t, "QTYPE_PLAYGROUND", "index.html", "the folder that make playground wrote")
	stage(t, "playwright", "test")
}

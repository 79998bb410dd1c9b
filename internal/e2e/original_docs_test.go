package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// included is an example that a page of the documentation of QType (Python) shows.
var included = regexp.MustCompile(`--8<-- "\.\./examples/([^"]+)\.qtype\.yaml"`)

// TestOriginalExamples_Documentation: docs/migrate.md has each page of the documentation of
// QType (Python), except those of its components, and TestOriginalExamples runs each example
// that a page shows.
func TestOriginalExamples_Documentation(t *testing.T) {
	folder := os.Getenv(examplesVariable)
	if folder == "" {
		t.Skipf("SKIPPED: %s is not the folder of the source distribution", examplesVariable)
	}
	page := testkit.ReadFile(t, "docs/migrate.md")
	count, shown, known := 0, map[string]bool{}, originalExamples()
	testkit.Must(t, fs.WalkDir(os.DirFS(filepath.Join(folder, "docs")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" || strings.HasPrefix(path, "components/") {
			return err
		}
		count++
		if name := strings.TrimSuffix(path, ".md"); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/migrate.md does not have %s", name)
		}
		for _, found := range included.FindAllStringSubmatch(testkit.ReadFile(t, filepath.Join(folder, "docs", path)), -1) {
			example, listed := known[found[1]]
			if runs := listed && example.rejected == ""; !runs && !strings.Contains(page, "`"+found[1]+"`") {
				t.Errorf("%s shows %s, which neither runs nor has a reason in docs/migrate.md", path, found[1])
			}
			shown[found[1]] = true
		}
		return nil
	}))
	if count < 60 {
		t.Errorf("only %d pages", count)
	}
	if len(shown) < 20 {
		t.Errorf("pages show only %d examples", len(shown))
	}
}

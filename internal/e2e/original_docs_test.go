package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestOriginalExamples_Documentation: docs/migrate.md has each page of the documentation of
// QType (Python), except those of its components.
func TestOriginalExamples_Documentation(t *testing.T) {
	folder := os.Getenv(examplesVariable)
	if folder == "" {
		t.Skipf("SKIPPED: %s is not the folder of the source distribution", examplesVariable)
	}
	page := testkit.ReadFile(t, "docs/migrate.md")
	count := 0
	testkit.Must(t, fs.WalkDir(os.DirFS(filepath.Join(folder, "docs")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" || strings.HasPrefix(path, "components/") {
			return err
		}
		count++
		if name := strings.TrimSuffix(path, ".md"); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/migrate.md does not have %s", name)
		}
		return nil
	}))
	if count < 60 {
		t.Errorf("only %d pages", count)
	}
}

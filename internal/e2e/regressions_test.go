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

// TestDocs_Regressions: each test that docs/regressions.md names exists, and each row of its
// tables names one.
func TestDocs_Regressions(t *testing.T) {
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testkit.Must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasPrefix(filepath.ToSlash(path), "cmd/qtype/testdata/script/"):
			tests[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			for _, m := range function.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
			return err
		}
		return nil
	}))
	name := regexp.MustCompile("`((?:Test|Fuzz)\\w+|\\w+\\.txtar)`")
	rows := 0
	for line := range strings.Lines(testkit.ReadFile(t, "docs/regressions.md")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasSuffix(line, "| Test |\n") {
			continue
		}
		rows++
		named := name.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range named {
			if !tests[m[1]] {
				t.Errorf("there is no test %s", m[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
}

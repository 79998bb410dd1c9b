package e2e_test

import (
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate/lint"
)

// pages lists the project's Markdown files.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil || len(found) < 5 {
		t.Fatalf("found %d pages (%v)", len(found), err)
	}
	return found
}

// TestDocumentsInPagesAreValid checks every block of YAML that is a whole
// document, so that nobody copies a broken one.
func TestDocumentsInPagesAreValid(t *testing.T) {
	find := lint.Finder{Paths: slices.Sorted(maps.Keys(pages(t)))}
	documents, err := find.Find(t.Context())
	if err != nil || len(documents) == 0 {
		t.Fatalf("no page shows a whole document (%v)", err)
	}
	for _, d := range lint.Diagnostics(lint.Check(t.Context(), documents, loader.Options{})) {
		t.Errorf("%v", d)
	}
}

// TestExamplesAreValid checks the examples without a fault or a warning.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("examples/*/*.qtype.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v (%v)", files, err)
	}
	for _, file := range files {
		if _, faults := qtype.Check(t.Context(), file); len(faults) > 0 {
			for _, f := range faults {
				t.Errorf("%s:%s: %s: %s", file, f.Span, f.Code, f.Message)
			}
		}
	}
}

// TestLinksLeadSomewhere follows the links between the project's files.
func TestLinksLeadSomewhere(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range pages(t) {
		for _, l := range links.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(l[1])
			if err != nil || u.IsAbs() || u.Path == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), u.Path)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			}
		}
	}
}

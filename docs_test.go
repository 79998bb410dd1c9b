package qtype_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
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
	blocks := regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```")
	tried := 0
	for page, text := range pages(t) {
		for _, b := range blocks.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^id:`).MatchString(b[1]) {
				continue // a part of a document
			}
			tried++
			file := filepath.Join(t.TempDir(), "app.qtype.yaml")
			if err := os.WriteFile(file, []byte(b[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, faults := qtype.Check(t.Context(), file); len(faults) > 0 {
				t.Errorf("%s: %v in\n%s", page, faults.Err(), b[1])
				for _, f := range faults {
					t.Logf("%s: %s", f.Code, f.Message)
				}
			}
		}
	}
	if tried == 0 {
		t.Error("no page shows a whole document")
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

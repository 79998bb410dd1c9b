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
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
)

// readPages returns the text of each Markdown file of the module, by path.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata" || d.Name() == "rules" || d.Name() == "node_modules"):
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

// TestDocs_DocumentsAreValid checks every YAML block that is a whole document.
func TestDocs_DocumentsAreValid(t *testing.T) {
	find := lint.Finder{Paths: slices.Sorted(maps.Keys(readPages(t)))}
	documents, err := find.Find(t.Context())
	if err != nil || len(documents) == 0 {
		t.Fatalf("no page has a document (%v)", err)
	}
	for _, d := range lint.Diagnostics(lint.Check(t.Context(), documents, loader.Options{})) {
		t.Errorf("%v", d)
	}
}

// TestExamples_AreValid allows neither errors nor warnings in examples.
func TestExamples_AreValid(t *testing.T) {
	files, err := filepath.Glob("examples/*/*.qtype.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v (%v)", files, err)
	}
	for _, file := range files {
		if _, diags := qtype.Check(t.Context(), file); len(diags) > 0 {
			for _, d := range diags {
				t.Errorf("%s:%s: %s: %s", file, d.Span, d.Code, d.Message)
			}
		}
	}
}

// TestDocs_LinksResolve follows the relative links of all pages, to files and to
// headings.
func TestDocs_LinksResolve(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	pages := readPages(t)
	fragments := map[string][]string{}
	for page, text := range pages {
		fragments[page] = headings(text)
	}
	for page, text := range pages {
		for _, l := range links.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			u, err := url.Parse(l[1])
			if err != nil || u.IsAbs() {
				continue
			}
			target := filepath.Join(filepath.Dir(page), u.Path)
			if u.Path == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, l[1])
			} else if pages[target] != "" && u.Fragment != "" && !slices.Contains(fragments[target], u.Fragment) {
				t.Errorf("%s links to %s, but the page has no such heading", page, l[1])
			}
		}
	}
}

// headings returns the fragments that GitHub gives the headings of a page.
func headings(text string) []string {
	var fragments []string
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		fragments = append(fragments, strings.ReplaceAll(plain, " ", "-"))
	}
	return fragments
}

// TestDocs_Index: docs/README.md links every page of its folder and of those without an index.
func TestDocs_Index(t *testing.T) {
	index := testkit.ReadFile(t, "docs/README.md")
	for page := range readPages(t) {
		path, ok := strings.CutPrefix(filepath.ToSlash(page), "docs/")
		if folder, _, in := strings.Cut(path, "/"); !ok || path == "README.md" || in && (folder == "reference" || folder == "decisions") {
			continue
		}
		if !strings.Contains(index, "]("+path+")") {
			t.Errorf("docs/README.md has no link to %s", path)
		}
	}
}

// TestDocs_HowToPages: each how-to page of QType (Python) in docs/migrate.md has one page here,
// of the same name.
func TestDocs_HowToPages(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `How To/[^`]*/([a-z_]+)`.* \\| \\[[^\\]]*\\]\\(howto/([a-z-]+)\\.md\\) \\|")
	page := testkit.ReadFile(t, "docs/migrate.md")
	rows := row.FindAllStringSubmatch(page, -1)
	if names := strings.Count(page, "`How To/"); len(rows) != names || names < 38 {
		t.Errorf("of %d how-to pages, %d have a row with one page", names, len(rows))
	}
	for _, m := range rows {
		if want := strings.ReplaceAll(m[1], "_", "-"); m[2] != want {
			t.Errorf("the page for %s is %s, want %s", m[1], m[2], want)
		}
	}
}

// TestDocs_CitationsExist: pages that comments of Go files cite exist.
func TestDocs_CitationsExist(t *testing.T) {
	cited := regexp.MustCompile(`(?m)^\s*//.*\b(docs/[a-z0-9/-]+\.md)`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s cites %s, which does not exist", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

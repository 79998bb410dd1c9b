package e2e_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// siteFolder returns the folder of the documentation as a site: QTYPE_SITE, made by make site.
func siteFolder(t *testing.T) string {
	folder := os.Getenv("QTYPE_SITE")
	if folder == "" {
		t.Skip("SKIPPED: QTYPE_SITE is not the folder of the site; the step site of .ci/run sets it")
	}
	folder, err := filepath.Abs(folder)
	testkit.Must(t, err)
	return folder
}

// TestSite_Links follows the links of all pages to files and headings of the site, and
// requires that nothing is loaded from another server.
func TestSite_Links(t *testing.T) {
	folder := siteFolder(t)
	pages := map[string]string{}
	testkit.Must(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "playground" {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".html" {
			pages[path] = testkit.ReadFile(t, path)
		}
		return err
	}))
	if len(pages) < 100 {
		t.Fatalf("the site has %d pages", len(pages))
	}
	link := regexp.MustCompile(`<(a|link|script|img)\b[^>]*?\s(?:href|src)="([^"]*)"`)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(strings.ReplaceAll(m[2], "&amp;", "&"))
			if err != nil || u.IsAbs() {
				if m[1] != "a" && u != nil && u.Scheme != "data" {
					t.Errorf("%s loads %s", page, m[2])
				}
				continue
			}
			target := page
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(u.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[2])
			} else if to := pages[target]; to != "" && u.Fragment != "" && !strings.Contains(to, ` id="`+u.Fragment+`"`) {
				t.Errorf("%s links to %s, but the page has no such heading", page, m[2])
			}
		}
	}
}

// TestSite_Browser searches in a browser, in the files of the site without a server: guides come
// before decisions. Blocks of code have a button that copies them.
func TestSite_Browser(t *testing.T) {
	folder := siteFolder(t)
	browser := os.Getenv("QTYPE_CHROMIUM")
	if browser == "" {
		t.Skip("SKIPPED: QTYPE_CHROMIUM is not the path of chromium")
	}
	page := func(name string) string {
		t.Helper()
		cmd := testkit.Command(t, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=20000", "--dump-dom", "file://"+filepath.ToSlash(folder)+"/"+name)
		text, err := cmd.Output()
		testkit.Must(t, err)
		return string(text)
	}
	found := page("search.html?q=token_flush_size")
	for _, want := range []string{`href="memory.html`, `href="reference/memories.html`} {
		if !strings.Contains(found, want) {
			t.Errorf("the results have no %s: %.3000s", want, found)
		}
	}
	found = page("search.html?q=encryption")
	guide, decision := strings.Index(found, `href="memory-stores.html`), strings.Index(found, `href="decisions/`)
	if guide < 0 || decision < guide {
		t.Errorf("the guide is at %d of the results, a decision at %d", guide, decision)
	}
	if !strings.Contains(page("guides/chat.html"), `class="copybtn`) {
		t.Error("blocks of code have no button to copy them")
	}
}

package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// Browser is the path of chromium.
type Browser string

// NeedBrowser returns the browser QTYPE_CHROMIUM.
func NeedBrowser(t testing.TB) Browser {
	t.Helper()
	program := os.Getenv("QTYPE_CHROMIUM")
	if program == "" {
		Need(t, fmt.Errorf("QTYPE_CHROMIUM is not the path of chromium: %w", ErrMissing))
	}
	return Browser(program)
}

// Open opens a file and returns its document, and the messages of its console.
func (b Browser) Open(t testing.TB, path string) (dom, messages string) {
	t.Helper()
	browser := testkit.Command(t, string(b), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", "file://"+filepath.ToSlash(path))
	var log strings.Builder
	browser.Stderr = &log
	text, err := browser.Output()
	testkit.Must(t, err)
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			messages += line
		}
	}
	return string(text), messages
}

// Run opens a copy of a page that allows scripts, runs a script at its end, and returns the
// body, and the messages of its console.
func (b Browser) Run(t testing.TB, page, script string) (body, messages string) {
	t.Helper()
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	i := strings.LastIndex(page, "</body>")
	path := filepath.Join(t.TempDir(), "page.html")
	testkit.Must(t, os.WriteFile(path, []byte(page[:i]+"<script>"+script+"</script>"+page[i:]), 0o600))
	dom, messages := b.Open(t, path)
	_, body, _ = strings.Cut(dom, "<body>")
	return body, messages
}

// CheckAccessibility runs axe, of QTYPE_UI_MODULES, in a page with all its details open.
func (b Browser) CheckAccessibility(t testing.TB, page string) {
	t.Helper()
	modules := os.Getenv("QTYPE_UI_MODULES")
	if modules == "" {
		Need(t, fmt.Errorf("QTYPE_UI_MODULES is not the folder of axe-core: %w", ErrMissing))
	}
	axe := testkit.ReadFile(t, filepath.Join(modules, "axe-core", "axe.min.js"))
	result, messages := b.Run(t, regexp.MustCompile(`<details( |>)`).ReplaceAllString(page, "<details open$1"), axe+";axe.run().then((r) => {"+
		"document.body.textContent = 'violations: ' + r.violations.map((v) => v.id + ' ' + v.nodes[0].html).join('; ') + ', passed ' + r.passes.length })")
	if !regexp.MustCompile(`^violations: , passed [1-9]`).MatchString(result) {
		t.Errorf("axe: %.3000s\n%s", result, messages)
	}
}

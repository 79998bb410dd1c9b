package traceview_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/html"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// hostileRow is a question that would load files and run scripts of SERVER.
const hostileRow = `</pre></title></style><script src="SERVER/src.js"></script><script>document.title = "changed"; fetch("SERVER/fetch")</script>` +
	`<img src="SERVER/image" onerror="document.title = 'changed'"><iframe src="SERVER/frame"></iframe><style>@import "SERVER/style";</style><a href="javascript:alert(1)">here</a> {{.Title}} end of the question`

// A real browser, QTYPE_CHROMIUM, opens the page from a file: it requests nothing, reports no
// error, and shows the texts of rows as texts.
func TestHTML_Browser(t *testing.T) {
	program := os.Getenv("QTYPE_CHROMIUM")
	if program == "" {
		servertest.Need(t, fmt.Errorf("QTYPE_CHROMIUM is not the path of chromium: %w", servertest.ErrMissing))
	}
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	question := strings.ReplaceAll(hostileRow, "SERVER", server.URL)
	page := traced(t, "trace.html", question, "fail")
	path, err := filepath.Abs("trace.html")
	testkit.Must(t, err)

	dom, messages := browse(t, program, path)
	if n := requests.Load(); n != 0 {
		t.Errorf("the page has sent %d requests", n)
	}
	if strings.Contains(messages, "CONSOLE") {
		t.Errorf("the browser reports %s", messages)
	}
	doc, err := html.Parse(strings.NewReader(dom))
	testkit.Must(t, err)
	shown := map[string]string{} // by element
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			shown[n.Parent.Data] += n.Data + "\n"
		}
	}
	if shown["title"] != "Trace of assistant\n" || shown["script"] != "" {
		t.Errorf("the title is %q, scripts are %q", shown["title"], shown["script"])
	}
	for _, want := range []string{question, "Be kind.\nBe brief.", "Sun in Bonn", `It is <b>sunny</b>, key ***.`, "out of order"} {
		if !strings.Contains(shown["pre"], want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	checkAccessibility(t, program, page)
}

// checkAccessibility runs axe, of QTYPE_UI_MODULES, in a copy of the page that allows scripts.
func checkAccessibility(t *testing.T, program, page string) {
	modules := os.Getenv("QTYPE_UI_MODULES")
	if modules == "" {
		servertest.Need(t, fmt.Errorf("QTYPE_UI_MODULES is not the folder of axe-core: %w", servertest.ErrMissing))
	}
	axe := testkit.ReadFile(t, filepath.Join(modules, "axe-core", "axe.min.js"))
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	page = strings.ReplaceAll(page, "<details ", "<details open ")
	page = strings.Replace(page, "</body>", "<script>"+axe+"</script><script>axe.run().then((r) => {"+
		"document.body.textContent = 'violations: ' + r.violations.map((v) => v.id + ' ' + v.nodes[0].html).join('; ') + ', passed ' + r.passes.length })</script></body>", 1)
	path := filepath.Join(t.TempDir(), "axe.html")
	testkit.Must(t, os.WriteFile(path, []byte(page), 0o600))
	dom, messages := browse(t, program, path)
	_, result, _ := strings.Cut(dom, "<body>")
	if !regexp.MustCompile(`^violations: , passed [1-9]`).MatchString(result) {
		t.Errorf("axe: %.3000s\n%s", result, messages)
	}
}

// browse opens a file and returns its document, and what the browser has logged.
func browse(t *testing.T, program, path string) (dom, messages string) {
	t.Helper()
	browser := testkit.Command(t, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", "file://"+filepath.ToSlash(path))
	var log strings.Builder
	browser.Stderr = &log
	text, err := browser.Output()
	testkit.Must(t, err)
	return string(text), log.String()
}

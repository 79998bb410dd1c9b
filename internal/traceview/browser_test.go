package traceview_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
	browser := servertest.NeedBrowser(t)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	question := strings.ReplaceAll(hostileRow, "SERVER", server.URL)
	page := traced(t, "trace.html", question, "fail")
	path, err := filepath.Abs("trace.html")
	testkit.Must(t, err)

	dom, messages := browser.Open(t, path)
	if n := requests.Load(); n != 0 {
		t.Errorf("the page has sent %d requests", n)
	}
	if messages != "" {
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
	browser.CheckAccessibility(t, page)
}

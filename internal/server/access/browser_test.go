package access_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// attackPage is a page that uses a server of its visitor in the ways that a page has.
const attackPage = `<!doctype html><title>attack</title><iframe src="%[1]s/frame"></iframe><img src="%[1]s/image"><script src="%[1]s/script"></script>
<form method="post" action="%[1]s/form" target="hidden" enctype="text/plain"><input name="a" value="b"></form><iframe name="hidden"></iframe><p id="result"></p>
<script>
document.forms[0].submit()
const text = (call) => call.then((r) => r.text()).catch(() => 'failed')
Promise.all([
  text(fetch('%[1]s/read')),
  text(fetch('%[1]s/opaque', { mode: 'no-cors' })),
  text(fetch('%[1]s/simple', { method: 'POST', mode: 'no-cors', body: '{}' })),
  text(fetch('%[1]s/json', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })),
  text(fetch('%[2]s/rebound', { mode: 'no-cors' })),
  Promise.resolve(navigator.sendBeacon('%[1]s/beacon', 'a')).then(() => 'sent'),
]).then((all) => { document.getElementById('result').textContent = all.join(',') })
</script>`

const ownPage = `<!doctype html><title>own</title><p id="result"></p><script src="/own.js"></script>`

const ownScript = `fetch('/call', { method: 'POST', body: '{}' }).then((r) => r.text()).then((text) => { document.getElementById('result').textContent = text })`

// A real browser, QTYPE_CHROMIUM: pages of the server work, and no request of another page
// reaches a handler, whether by its address or by a name that resolves to it.
func TestControl_Browser(t *testing.T) {
	program := os.Getenv("QTYPE_CHROMIUM")
	if program == "" {
		servertest.Need(t, fmt.Errorf("QTYPE_CHROMIUM is not the path of chromium: %w", servertest.ErrMissing))
	}
	var calls atomic.Int64
	s := start(t, access.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, ownPage)
		case "/own.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, ownScript)
		default:
			_, _ = io.WriteString(w, "called")
		}
	}))
	port := s.url[strings.LastIndex(s.url, ":"):]
	if got := open(t, program, s.url+"/", ""); !strings.Contains(got, `<p id="result">called</p>`) {
		t.Errorf("own page: %s; log: %s", got, s.log)
	}
	calls.Store(0)
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, attackPage, "http://localhost"+port, "http://rebound.test"+port)
	}))
	t.Cleanup(attacker.Close)
	page := "http://attacker.test" + attacker.URL[strings.LastIndex(attacker.URL, ":"):] + "/"
	got := open(t, program, page, "MAP attacker.test 127.0.0.1, MAP rebound.test 127.0.0.1")
	if result := regexp.MustCompile(`<p id="result">(.*)</p>`).FindStringSubmatch(got); result == nil || strings.Contains(result[1], "called") {
		t.Errorf("page of another site: %s", got)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d requests of another site were accepted", n)
	}
	for _, path := range []string{"/frame", "/image", "/script", "/form", "/read", "/opaque", "/simple", "/json", "/rebound", "/beacon"} {
		if !strings.Contains(s.log.String(), `"path":"`+path+`"`) {
			t.Logf("the browser did not send the request %s", path) // it may protect its user before the server does
		}
	}
	if n := strings.Count(s.log.String(), "request refused"); n < 5 {
		t.Errorf("only %d requests reached the server", n)
	}
}

// open returns the document of a page after its scripts ran.
func open(t *testing.T, program, url, resolve string) string {
	t.Helper()
	browser := testkit.Command(t, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules="+resolve, "--virtual-time-budget=10000", "--dump-dom", url)
	text, err := browser.Output()
	testkit.Must(t, err)
	return string(text)
}

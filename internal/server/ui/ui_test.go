package ui_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/ui"
)

// get requests a path as it is written, without the cleaning of http.Client.
func get(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	return request(t, http.MethodGet, path, headers...)
}

func request(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	ui.Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// asset returns the path of the page's script.
func asset(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`src="\./(assets/index-[\w-]+\.js)"`).FindStringSubmatch(body(t, get(t, "/")))
	if m == nil {
		t.Fatal("the page has no script in assets")
	}
	return "/" + m[1]
}

// Every page has the address of the application relative to it.
func TestHandler_Pages(t *testing.T) {
	for _, path := range []string{
		"/", "/chat/talk", "/chat/talk/c-014", "/chat/talk/a%2Fb", "/chat/%E4%BD%A0/x%20", "/form/order",
		"/batch/order", "/graph/order", "/history/order", "/trace/run-1",
	} {
		base := strings.Repeat("../", strings.Count(path, "/")-1)
		if base == "" {
			base = "./"
		}
		r := get(t, path)
		text := body(t, r)
		if r.StatusCode != http.StatusOK || !strings.Contains(text, `<base href="`+base+`" />`) {
			t.Errorf("%s: status %d, want a page with the base %q", path, r.StatusCode, base)
		}
		if got := r.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
			t.Errorf("%s: content type %q", path, got)
		}
		if r.Header.Get("Content-Security-Policy") != ui.ContentSecurityPolicy || r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: headers %v", path, r.Header)
		}
	}
}

// Neither scripts nor styles are in the page itself, as the policy requires.
func TestHandler_NoInlineCode(t *testing.T) {
	text := body(t, get(t, "/"))
	for _, inline := range []string{`<script>`, `<style`, ` style="`, ` onload=`, `javascript:`} {
		if strings.Contains(text, inline) {
			t.Errorf("the page contains %q", inline)
		}
	}
}

func TestHandler_Asset(t *testing.T) {
	path := asset(t)
	plain := get(t, path)
	text := body(t, plain)
	if plain.StatusCode != http.StatusOK || plain.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || plain.Header.Get("Content-Encoding") != "" {
		t.Errorf("status %d, headers %v", plain.StatusCode, plain.Header)
	}
	if got := plain.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("Cache-Control is %q", got)
	}
	zipped := get(t, path, "Accept-Encoding", "br, gzip")
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("headers %v", zipped.Header)
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(z); err != nil || string(content) != text {
		t.Errorf("the compressed script differs: %v", err)
	}
	for _, tag := range []string{plain.Header.Get("ETag"), zipped.Header.Get("ETag"), "*", `"x", W/` + plain.Header.Get("ETag")} {
		if r := get(t, path, "If-None-Match", tag); r.StatusCode != http.StatusNotModified || body(t, r) != "" {
			t.Errorf("If-None-Match: %s: status %d", tag, r.StatusCode)
		}
	}
	if r := get(t, path, "If-None-Match", `"other"`); r.StatusCode != http.StatusOK {
		t.Errorf("another ETag: status %d", r.StatusCode)
	}
	if r := get(t, path, "Accept-Encoding", "gzip;q=0, br"); r.Header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to a client that refuses it")
	}
	head := request(t, http.MethodHead, path)
	if head.StatusCode != http.StatusOK || head.ContentLength != int64(len(text)) || body(t, head) != "" {
		t.Errorf("HEAD: status %d, length %d", head.StatusCode, head.ContentLength)
	}
}

func TestHandler_NotFound(t *testing.T) {
	for _, path := range []string{
		"/index.html", "/assets", "/assets/", "/assets/none.js", "/dist/index.html", "/ui.go", "/unknown",
		"/chat", "/chat/", "/chat//x", "/chat/a/b/c", "/form", "/form/a/b", "/trace/../x", "/chat/..", "/chat/./x",
		"/..", "/../ui.go", "/assets/../index.html", "/%2e%2e/ui.go", "/assets/..%2findex.html", "/assets%2Fx",
		"//index.html", "/\\..\\ui.go", "/theme.js/", "/theme.js%00", "/.npmrc",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawPath = unescape(path), path
		w := httptest.NewRecorder()
		ui.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: status %d, type %s", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
}

// unescape decodes what net/http decodes before it calls a handler.
func unescape(path string) string {
	return strings.NewReplacer("%2e", ".", "%2f", "/", "%2F", "/", "%00", "\x00").Replace(path)
}

func TestHandler_Method(t *testing.T) {
	r := request(t, http.MethodPost, "/")
	if r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("status %d, headers %v", r.StatusCode, r.Header)
	}
}

func TestHandler_OtherFiles(t *testing.T) {
	for path, kind := range map[string]string{"/favicon.svg": "image/svg+xml", "/theme.js": "text/javascript; charset=utf-8"} {
		r := get(t, path)
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != kind || r.Header.Get("Cache-Control") != "no-cache" || r.Header.Get("ETag") == "" {
			t.Errorf("%s: status %d, headers %v", path, r.StatusCode, r.Header)
		}
	}
}

package documents_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the driver of the test's database

	"github.com/qtype-dev/qtype/internal/documents"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// testSite is a web site that records what was requested.
type testSite struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	pages    map[string]string // by path; a value "→ /x" is a redirect, "! 503" a status
}

func serve(t *testing.T, pages map[string]string) *testSite {
	t.Helper()
	s := &testSite{pages: pages}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		text, ok := s.pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(text, "→ "):
			http.Redirect(w, r, strings.ReplaceAll(strings.TrimPrefix(text, "→ "), "{site}", s.URL), http.StatusFound)
		case strings.HasPrefix(text, "! "):
			status, _ := strconv.Atoi(text[2:]) // 0 panics, which fails the test
			w.WriteHeader(status)
		case strings.HasPrefix(text, "<html"):
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Last-Modified", "Sat, 01 Mar 2025 10:00:00 GMT")
			_, _ = w.Write([]byte(text)) // the client may be gone
		default:
			_, _ = w.Write([]byte(strings.ReplaceAll(text, "{site}", s.URL))) // the client may be gone
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// asked reports whether a path was requested.
func (s *testSite) asked(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.requests, path)
}

func html(title, body string) string {
	return "<html><head><title>" + title + "</title></head><body><main><h1>" + title + "</h1><p>" + body + "</p></main></body></html>"
}

func TestWeb_FollowsLinks(t *testing.T) {
	elsewhere := serve(t, map[string]string{"/": html("Elsewhere", "x")})
	s := serve(t, map[string]string{
		"/robots.txt": "User-agent: *\nDisallow: /private\nDisallow: /*.gif$\nAllow: /private/open\n\nUser-agent: other\nDisallow: /\n",
		"/":           html("Home", `<a href="/a">a</a> <a href="b#part">b</a> <a href="/private/x">no</a> <a href="/private/open">yes</a> <a href="/missing">404</a> <a href="`+elsewhere.URL+`/">other</a> <a href="mailto:a@b.example">mail</a> <a rel="nofollow" href="/nofollow">n</a> <a href="/image.gif">i</a> <a href="/archive/2020/x">old</a>`),
		"/a":          html("A", `<a href="/">home</a> <a href="/deep">deep</a> <a href="/moved">moved</a>`),
		"/b":          html("B", "text of b"), "/deep": html("Deep", `<a href="/deeper">x</a>`), "/deeper": html("Deeper", ""),
		"/private/x": html("Private", ""), "/private/open": html("Open", ""), "/moved": "→ /b", "/nofollow": html("N", ""),
		"/archive/2020/x": html("Old", ""),
	})
	args := map[string]any{"urls": []any{s.URL}, "max_depth": int64(2), "exclude": []any{"/archive/**"}, "allow_private": true}
	got := read(t, "web", args, nil)
	var titles []string
	for _, d := range got.docs {
		titles = append(titles, fmt.Sprint(d.Metadata["title"]))
	}
	if want := []string{"Home", "A", "B", "Open", "Deep"}; !slices.Equal(titles, want) || got.failed != nil || got.err != nil {
		t.Errorf("got %q, failed %q, %v", titles, got.failed, got.err)
	}
	for _, path := range []string{"/private/x", "/image.gif", "/nofollow", "/deeper", "/archive/2020/x"} {
		if s.asked(path) {
			t.Errorf("%s was requested", path)
		}
	}
	if elsewhere.asked("/") {
		t.Error("another server was requested")
	}
	home := got.docs[0]
	if home.URI != s.URL+"/" || home.Metadata["last_modified_date"] != "2025-03-01" || home.Metadata["file_type"] != "text/html" || !strings.HasPrefix(home.Text, "# Home") {
		t.Errorf("got %+v", home)
	}
	again := read(t, "web", args, nil)
	if len(again.docs) != len(got.docs) || again.docs[1].ID != got.docs[1].ID {
		t.Error("a second reading has other ids")
	}
	args["max_pages"] = int64(2)
	if got := read(t, "web", args, nil); len(got.docs) != 2 {
		t.Errorf("max_pages: %v", got.names())
	}
}

// TestWeb_FailedLinks: a linked page that a later reading may get is a failure, so that IndexUpsert
// with sync does not remove it. One that is not to be read is not.
func TestWeb_FailedLinks(t *testing.T) {
	other := serve(t, map[string]string{"/robots.txt": "! 503", "/page": html("Page", "")})
	for answer, want := range map[string]string{
		"! 404": "", "! 403": "", "! 410": "", "→ http://elsewhere.invalid/": "",
		"! 429": "the server answered 429 Too Many Requests", "! 408": "the server answered 408 Request Timeout", "! 503": "the server answered 503 Service Unavailable",
	} {
		s := serve(t, map[string]string{"/": html("Home", `<a href="/page">page</a>`), "/page": answer})
		got := read(t, "web", map[string]any{"urls": []any{s.URL}, "max_depth": int64(1), "allow_private": true}, nil)
		if failed := strings.Join(got.failed, "\n"); len(got.docs) != 1 || got.err != nil || (failed == "") != (want == "") || !strings.HasSuffix(failed, want) {
			t.Errorf("%s: got %v, failed %q, %v", answer, got.names(), failed, got.err)
		}
	}
	s := serve(t, map[string]string{"/": html("Home", `<a href="`+other.URL+`/page">page</a>`)})
	got := read(t, "web", map[string]any{"urls": []any{s.URL}, "max_depth": int64(1), "same_host": false, "allow_private": true}, nil)
	if len(got.docs) != 1 || len(got.failed) != 1 || !strings.Contains(got.failed[0], "reading the site's robots.txt: the server answered 503") || other.asked("/page") {
		t.Errorf("got %v, failed %q, %v", got.names(), got.failed, got.err)
	}
}

// TestWeb_Refuses: private addresses, also after a redirect, and limits.
func TestWeb_Refuses(t *testing.T) {
	s := serve(t, map[string]string{"/big": html("Big", strings.Repeat("x", 5000)), "/loop": "→ /loop", "/file": "→ file:///etc/passwd", "/out": "→ http://out.invalid/"})
	for name, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"private":  {map[string]any{"urls": []any{s.URL + "/big"}}, "is a private address; set allow_private: true"},
		"size":     {map[string]any{"urls": []any{s.URL + "/big"}, "max_page_bytes": int64(1000), "allow_private": true}, "too large: it has more than 1000 bytes"},
		"loop":     {map[string]any{"urls": []any{s.URL + "/loop"}, "allow_private": true}, "stopped after 5 redirects"},
		"scheme":   {map[string]any{"urls": []any{s.URL + "/file"}, "allow_private": true}, "is not an http or https address"},
		"host":     {map[string]any{"urls": []any{s.URL + "/out"}, "allow_private": true}, "redirects to http://out.invalid/, which is not read"},
		"missing":  {map[string]any{"urls": []any{s.URL + "/none"}, "allow_private": true}, "the server answered 404 Not Found"},
		"no robot": {map[string]any{"urls": []any{"http://127.0.0.1:1/"}, "allow_private": true}, "127.0.0.1:1"},
	} {
		got := read(t, "web", c.args, nil)
		if len(got.failed) != 1 || !strings.Contains(got.failed[0], c.want) || len(got.docs) != 0 {
			t.Errorf("%s: got %q %v", name, got.failed, got.err)
		}
	}
}

// TestWeb_Credentials: only the first server gets them.
func TestWeb_Credentials(t *testing.T) {
	got := map[string]string{}
	handler := func(name, body string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got[name+r.URL.Path] = r.Header.Get("Authorization")
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(body)) // the client may be gone
		}))
		t.Cleanup(s.Close)
		return s
	}
	other := handler("other", html("Other", ""))
	first := handler("first", html("First", `<a href="`+other.URL+`/x">x</a>`))
	env := documents.Env{HTTP: func(url string, allowPrivate bool) (*http.Client, error) {
		auth := &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "token"}, Token: spec.NewSecret("sesame")}
		return tool.Client(tool.Service{Tool: "read", URL: url, AllowPrivate: allowPrivate, Auth: spec.Ref[spec.Auth]{ID: "token", To: auth}}, tool.Options{})
	}}
	readIn(t.Context(), "web", map[string]any{"urls": []any{first.URL + "/"}, "max_depth": int64(1), "same_host": false, "allow_private": true}, nil, env)
	if got["first/"] != "Bearer sesame" || got["other/x"] != "" {
		t.Errorf("got %v", got)
	}
}

func TestSitemap(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("{site}/d\n")) // to memory
	_ = z.Close()                        // to memory
	s := serve(t, map[string]string{
		"/robots.txt": "Sitemap: {site}/index.xml\nUser-agent: *\nDisallow: /secret\n",
		"/index.xml":  `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>{site}/pages.xml</loc></sitemap><sitemap><loc>{site}/list.txt</loc></sitemap></sitemapindex>`,
		"/pages.xml":  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> {site}/a?x=1&amp;y=2 </loc></url><url><loc>{site}/secret</loc></url><url><loc>http://elsewhere.invalid/</loc></url><url><loc>{site}/a?x=1&amp;y=2</loc></url></urlset>`,
		"/list.txt":   "{site}/b\n{site}/gone\n", "/a": html("A", ""), "/b": html("B", ""), "/secret": html("S", ""),
		"/broken.xml": "<html><body>no</body></html>",
	})
	got := read(t, "sitemap", map[string]any{"sitemap_url": s.URL, "allow_private": true}, nil)
	if !slices.Equal(got.names(), []string{"a", "b"}) || len(got.failed) != 2 || s.asked("/secret") || got.err != nil {
		t.Errorf("got %v, failed %q, %v", got.names(), got.failed, got.err)
	}
	if got := read(t, "sitemap", map[string]any{"sitemap_url": s.URL + "/pages.xml", "filter": "/a", "allow_private": true}, nil); !slices.Equal(got.names(), []string{"a"}) {
		t.Errorf("filter: %v", got.names())
	}
	if got := read(t, "sitemap", map[string]any{"sitemap_url": s.URL + "/broken.xml", "allow_private": true}, nil); got.err == nil || !strings.Contains(got.err.Error(), "is not a sitemap: its first element is html") {
		t.Errorf("got %v", got.err)
	}
}

func TestHuggingFace(t *testing.T) {
	s := serve(t, map[string]string{
		"/datasets/ada/notes/resolve/main/data/train.jsonl": "→ /files/1",
		"/files/1": "{\"text\": \"it's\", \"n\": 1.0, \"ok\": true, \"none\": null}\nbroken\n[\"a\"]\n",
	})
	got := read(t, "huggingface", map[string]any{"endpoint": s.URL, "allow_private": true}, map[string]any{"path": "datasets/ada/notes/data/train.jsonl"})
	if len(got.docs) != 2 || got.docs[0].Text != `{'text': "it's", 'n': 1.0, 'ok': True, 'none': None}` || got.docs[1].Text != "['a']" || got.err != nil {
		t.Errorf("got %+v %v", got.docs, got.err)
	}
	if got := read(t, "huggingface", map[string]any{"endpoint": s.URL, "allow_private": true}, map[string]any{"path": "datasets/ada/notes/none.jsonl"}); got.err == nil || !strings.Contains(got.err.Error(), "404 Not Found") {
		t.Errorf("got %v", got.err)
	}
}

func TestRemote(t *testing.T) {
	s := serve(t, map[string]string{"/docs/a.md": "# A", "/robots.txt": "User-agent: *\nDisallow: /docs/b.md"})
	got := read(t, "RemoteReader", map[string]any{"url": s.URL + "/docs/a.md", "urls": []any{s.URL + "/docs/b.md"}, "allow_private": true}, nil)
	if !slices.Equal(got.names(), []string{"a.md"}) || got.docs[0].Text != "# A" || len(got.failed) != 1 || !strings.Contains(got.failed[0], "robots.txt forbids it") {
		t.Errorf("got %v, failed %q, %v", got.names(), got.failed, got.err)
	}
	if got := read(t, "s3", map[string]any{"bucket": "docs"}, nil); got.err != nil && !strings.Contains(got.err.Error(), "this program has no file system s3") {
		t.Errorf("got %v", got.err)
	}
}

func TestSQL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // errors of the statements are checked
	for _, s := range []string{"CREATE TABLE notes (id INTEGER, title TEXT, body TEXT, author TEXT)", "INSERT INTO notes VALUES (1, 'One', 'first', 'ada'), (2, 'Two', NULL, 'bob')"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	args := map[string]any{"connection": "sqlite:///" + path, "query": "SELECT * FROM notes ORDER BY id", "id_column": "id", "metadata_columns": []any{"author"}}
	got := read(t, "sql", args, nil)
	if len(got.docs) != 2 || got.docs[0].Text != "title: One\nbody: first" || got.docs[1].Text != "Two" || got.docs[0].Metadata["author"] != "ada" || got.docs[0].Name != "1" || got.err != nil {
		t.Errorf("got %+v %v", got.docs, got.err)
	}
	args["query"] = "SELECT id, title FROM notes WHERE author = :author"
	args["metadata_columns"] = nil
	env := testEnv()
	env.Variables = map[string]any{"author": "bob"}
	if got := readIn(t.Context(), "sql", args, nil, env); len(got.docs) != 1 || got.docs[0].Text != "Two" {
		t.Errorf("got %+v %v", got.docs, got.err)
	}
	if got := read(t, "sql", args, nil); got.err == nil || !strings.Contains(got.err.Error(), "the query uses :author") {
		t.Errorf("got %v", got.err)
	}
	args["query"], args["content_columns"] = "SELECT id FROM notes", []any{"text"}
	if got := read(t, "sql", args, nil); got.err == nil || !strings.Contains(got.err.Error(), `no column "text"; columns are id`) {
		t.Errorf("got %v", got.err)
	}
}

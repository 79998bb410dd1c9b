package loader_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// site serves texts by path and counts how often each is asked for.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

func serve(t *testing.T, pages map[string]string) *site {
	t.Helper()
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.Path]++
		s.mu.Unlock()
		text, found := pages[r.URL.Path]
		if to, moved := strings.CutPrefix(text, "moved: "); moved {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

// requests is how many requests the site has had.
func (s *site) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, times := range s.asked {
		n += times
	}
	return n
}

func TestRemoteDocument(t *testing.T) {
	s := serve(t, map[string]string{
		"/a/app.yaml":          "id: app\ndescription: !include_raw text/hello.txt\nmodels: !include parts/models.yaml\ntypes: !include parts/types.yaml\n",
		"/a/text/hello.txt":    "hello",
		"/a/parts/models.yaml": "- !include ../one.yaml\n- !include ../one.yaml\n",
		"/a/one.yaml":          "{type: Model, id: small, provider: openai, model: x}",
		"/a/parts/types.yaml":  "moved: /a/moved.yaml",
		"/a/moved.yaml":        "[{id: Order, properties: {number: int}}]",
	})
	result, list := loader.Load(t.Context(), s.URL+"/a/app.yaml?sig=s3cret", loader.Options{Lookup: noEnv})
	app := result.Document.Application
	if app.Description != "hello" || len(app.Models) != 2 || len(app.Types) != 1 {
		t.Errorf("got %+v", app)
	}
	if len(list) != 1 || list[0].Span.String() != s.URL+"/a/one.yaml:1:44" {
		t.Fatalf("got %v", list)
	}
	chain := list[0].Span.Includes()
	if len(chain) != 2 || chain[0].String() != s.URL+"/a/parts/models.yaml:1:12" || chain[1].String() != s.URL+"/a/app.yaml:3:18" {
		t.Errorf("included from %v", chain)
	}
	for path, n := range s.asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
}

// A document of this machine may include what its author likes; what comes from
// elsewhere only what lies below it.
func TestRemoteBorder(t *testing.T) {
	outside := serve(t, map[string]string{"/x.yaml": "{id: stolen}"})
	s := serve(t, map[string]string{
		"/secret.yaml": "{id: stolen}", "/a/below.yaml": "{id: below}", "/a/sub/up.yaml": "!include ../below.yaml",
		"/a/out.yaml": "moved: /secret.yaml", "/a/far.yaml": "moved: " + outside.URL + "/x.yaml",
	})
	local := filepath.Join(t.TempDir(), "local.yaml")
	if err := os.WriteFile(local, []byte("{id: stolen}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"below.yaml": "", "sub/up.yaml": "", s.URL + "/a/below.yaml": "", "sub/../below.yaml": "",
		"../secret.yaml": "is not below", "/secret.yaml": "is not below", "%2e%2e/secret.yaml": "is not below",
		outside.URL + "/x.yaml": "is not below", "//" + strings.TrimPrefix(outside.URL, "http://") + "/x.yaml": "is not below",
		"file://" + local: "is not below", local: "is not below", "s3://bucket/x.yaml": "is not below",
		"out.yaml": "which is outside of", "far.yaml": "which is outside of",
	} {
		s.Config.Handler = withPage(s.Config.Handler, "/a/app.yaml", "id: app\nreferences: [!include \""+target+"\"]\n")
		_, list := loader.Load(t.Context(), s.URL+"/a/app.yaml", loader.Options{Lookup: noEnv})
		switch {
		case want == "" && len(list) > 0:
			t.Errorf("%s: %v", target, list)
		case want != "" && (len(list) != 1 || list[0].Code != "QT006" || !strings.Contains(list[0].Message, want)):
			t.Errorf("%s: %q is due, got %v", target, want, list)
		}
	}
	root := filepath.Join(t.TempDir(), "app.yaml")
	text := fmt.Sprintf("id: app\nreferences: [!include %s, !include %s/secret.yaml, !include %s/a/far.yaml]\n", local, s.URL, s.URL)
	if err := os.WriteFile(root, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, list := loader.Load(t.Context(), root, loader.Options{Lookup: noEnv}); len(list) > 0 {
		t.Errorf("from a local document: %v", list)
	}
	for want, opts := range map[string]loader.Options{
		"are disabled": {Offline: true}, "outside of the folder": {Confine: filepath.Dir(root)},
	} {
		opts.Lookup = noEnv
		before := s.requests()
		_, list := loader.Load(t.Context(), root, opts)
		if found := fmt.Sprint(list); !strings.Contains(found, want) || s.requests() != before {
			t.Errorf("%s: %d requests, %v", want, s.requests()-before, list)
		}
	}
}

func withPage(rest http.Handler, path, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			_, _ = io.WriteString(w, text)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

func TestRemoteErrors(t *testing.T) {
	s := serve(t, map[string]string{"/self.yaml": "!include self.yaml", "/text.yaml": "caf\xe9", "/loop.yaml": "moved: /loop.yaml"})
	for target, want := range map[string]string{
		s.URL + "/none.yaml":   "QT006 does not exist",
		s.URL + "/text.yaml":   "QT008 is not valid UTF-8 text (line 1)",
		s.URL + "/self.yaml":   "QT007 /self.yaml → " + s.URL + "/self.yaml",
		s.URL + "/loop.yaml":   "QT006 cannot be read: stopped after 5 redirects",
		"http://127.0.0.1:1/x": "QT006 cannot be read: connection refused",
		"memory://x/y.yaml":    "QT006 cannot be read: memory:// is not supported; these are: file, http, https",
	} {
		path := testkit.WriteFile(t, "app.yaml", "id: app\ndescription: !include "+target+"\n")
		_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
		code, text, _ := strings.Cut(want, " ")
		if len(list) != 1 || list[0].Code != code || !strings.Contains(list[0].Message, text) {
			t.Errorf("%s: %s is due, got %v", target, want, list)
		}
	}
	for address, want := range map[string]string{
		s.URL + "/none.yaml":                     s.URL + "/none.yaml does not exist",
		"http://127.0.0.1:1/app.yaml?key=s3cret": "http://127.0.0.1:1/app.yaml cannot be read: connection refused",
	} {
		if _, list := loader.Load(t.Context(), address, loader.Options{Lookup: noEnv}); len(list) != 1 || list[0].Code != "QT001" || list[0].Message != want {
			t.Errorf("%s: got %v", address, list)
		}
	}
}

// No answer may show what an address is protected with, neither in a message nor
// in an excerpt.
func TestRemoteSecrets(t *testing.T) {
	s := serve(t, map[string]string{"/bad.yaml": "{type: Model, id: m}"})
	host := strings.TrimPrefix(s.URL, "http://")
	text := "id: app\ndescription: !include_raw http://ann:s3cret@" + host + "/none.txt\nmodels:\n- !include http://" + host + "/bad.yaml?sig=s3cret\n"
	path := testkit.WriteFile(t, "app.yaml", text)
	_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	if len(list) != 2 {
		t.Fatalf("got %v", list)
	}
	var out strings.Builder
	if err := diag.Text(&out, list, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, print := range []func(io.Writer, diag.List) error{diag.JSON, diag.GitHub} {
		if err := print(&out, list); err != nil {
			t.Fatal(err)
		}
	}
	if all := out.String(); strings.Contains(all, "s3cret") || !strings.Contains(all, s.URL+"/none.txt") {
		t.Errorf("got %s", all)
	}
}

// What a hostile server sends is cut off, be it without end, and without much memory.
func TestRemoteLimits(t *testing.T) {
	block := []byte(strings.Repeat("x", 1<<16))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = w.Write(block)
			}
		case "/slow":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		case "/silent":
			<-r.Context().Done()
		default: // files without end that include each other
			_, _ = fmt.Fprintf(w, "!include %sx", filepath.Base(r.URL.Path))
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/endless": "is larger than 4 MiB", "/slow": "took longer than 300ms", "/silent": "300ms", "/chain": "more than",
	} {
		limits := loader.Limits{Wait: time.Hour}
		if strings.Contains(want, "300ms") {
			limits.Wait = 300 * time.Millisecond
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, list := loader.Load(t.Context(), s.URL+path, loader.Options{Lookup: noEnv, Limits: limits})
		runtime.ReadMemStats(&after)
		if len(list) != 1 || !strings.Contains(list[0].Message, want) {
			t.Errorf("%s: got %v", path, list)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 100<<20 {
			t.Errorf("%s: took %d bytes", path, grown)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, list := loader.Load(ctx, s.URL+"/silent", loader.Options{Lookup: noEnv}); len(list) != 1 || !strings.Contains(list[0].Message, "cancelled") {
		t.Errorf("cancelled: %v", list)
	}
}

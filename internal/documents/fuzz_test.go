package documents

import (
	"net/url"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/spec"
)

func TestRobots(t *testing.T) {
	text := "User-agent: a\nUser-agent: qtype\nDisallow: /x\nAllow: /x/y$\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /\nSitemap: /s.xml\n"
	for path, want := range map[string]bool{"/": true, "/x": false, "/x/y": true, "/x/y/z": false, "/xy": false, "/y?q=/x": true} {
		u, err := url.Parse("http://a.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := parseRobots(text, "QType/1.0").allows(u); got != want {
			t.Errorf("%s: %v", path, got)
		}
		if parseRobots(text, "other").allows(u) {
			t.Errorf("%s is allowed to others", path)
		}
	}
	if r := parseRobots(text, "qtype"); r.delay.Seconds() != 2 || len(r.sitemaps) != 1 {
		t.Errorf("got %+v", r)
	}
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{{"/a*b", "/axxb/c", true}, {"/a*b$", "/axxb/c", false}, {"/a*b$", "/ab/b", true}, {"/*", "/", true}, {"/a$", "/a", true}, {"*", "/", true}, {"$", "", true}} {
		if got := matchesRobots(c.pattern, c.path); got != c.want {
			t.Errorf("%s %s: %v", c.pattern, c.path, got)
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\nCrawl-delay: 1e300", "/axb")
	f.Fuzz(func(t *testing.T, text, path string) {
		r := parseRobots(text, "qtype")
		if r.delay < 0 || r.delay > maxCrawlDelay {
			t.Errorf("the delay is %s", r.delay)
		}
		r.allows(&url.URL{Path: path})
	})
}

func FuzzSitemap(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>/a</loc></url></urlset>`))
	f.Add([]byte("/a\n/b"))
	base := &url.URL{Scheme: "http", Host: "a.example", Path: "/sitemap.xml"}
	f.Fuzz(func(t *testing.T, data []byte) {
		pages, _, err := parseSitemap(base, data)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
		if len(pages) > maxSitemapURLs {
			t.Errorf("%d pages", len(pages))
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a": [1, 2.5, {"b": null}]}`, 1, 10)
	f.Fuzz(func(_ *testing.T, text string, levels, length int) {
		args := &spec.JSONArgs{CleanJSON: true}
		j := &jsonFile{args: args, loader: &spec.JSONLoaderArgs{InputFile: "a.json"}, limits: format.Limits{}}
		_, _ = j.document(text, "") // must not panic
		if levels >= 0 {
			args.LevelsBack, args.CollapseLength = &levels, &length
			_, _ = j.document(text, "") // must not panic
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("**/[a-z]*.?d", "a/b.md")
	f.Fuzz(func(_ *testing.T, pattern, path string) {
		if compiled, err := compilePattern(pattern); err == nil {
			compiled.MatchString(path)
		}
	})
}

package documents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
)

// The limits of the protocol (https://www.sitemaps.org/protocol.html).
const (
	maxSitemapBytes = 50 << 20
	maxSitemapURLs  = 50_000
	maxSitemaps     = 500 // of an index
)

// sitemap reads the pages that the sitemap of a site lists.
type sitemap struct {
	args    *spec.SitemapArgs
	env     Env
	exclude []*regexp.Regexp
}

func newSitemap(args *spec.SitemapArgs, env Env) (Source, error) {
	if _, err := webAddress(args.SitemapURL); err != nil {
		return nil, err
	}
	exclude, err := compilePaths(args.Exclude)
	return &sitemap{args: args, env: env, exclude: exclude}, err
}

// Read reads the pages in the order of the sitemap. Pages of other
// sites are skipped, as the protocol requires.
func (s *sitemap) Read(ctx context.Context, emit Emit) error {
	visits, err := newVisitor(&s.args.VisitArgs, s.args.SitemapURL, s.env)
	if err != nil {
		return err
	}
	defer visits.close()
	first, err := webAddress(s.args.SitemapURL)
	if err != nil {
		return err
	}
	sameHost := func(u *url.URL) bool { return u.Host == first.Host }
	read, seen := 0, map[string]bool{}
	return s.walk(ctx, visits, first, func(u *url.URL) error {
		if read >= s.args.MaxPages {
			return errStop
		}
		if seen[u.String()] || !sameHost(u) || isExcluded(s.exclude, u) || !strings.Contains(u.String(), s.args.Filter) {
			return nil
		}
		seen[u.String()] = true
		read++
		var doc *Document
		got, err := visits.fetch(ctx, u.String(), sameHost)
		if err == nil {
			doc, err = got.document(ctx, s.env.Limits)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return emit(doc, err)
	})
}

// errStop ends the walk without an error.
var errStop = errors.New("stop")

// walk calls f for each page of the sitemaps.
func (s *sitemap) walk(ctx context.Context, visits *visitor, first *url.URL, f func(*url.URL) error) error {
	queue, err := s.sitemaps(ctx, visits, first)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for count := 0; len(queue) > 0 && count < maxSitemaps; count++ {
		at := queue[0]
		queue = queue[1:]
		if known[at] {
			continue
		}
		known[at] = true
		pages, more, err := visits.sitemap(ctx, at, func(u *url.URL) bool { return u.Host == first.Host })
		if err != nil {
			return err
		}
		queue = append(queue, more...)
		for _, u := range pages {
			if err := f(u); err != nil {
				if errors.Is(err, errStop) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// sitemaps returns the addresses of the sitemaps to read: that of the arguments, or, for
// the address of a site, those of its robots.txt or /sitemap.xml.
func (s *sitemap) sitemaps(ctx context.Context, visits *visitor, first *url.URL) ([]string, error) {
	if first.Path != "/" {
		return []string{first.String()}, nil
	}
	known, err := visits.site(ctx, first)
	if err != nil {
		return nil, explainPage(first, err)
	}
	var own []string
	for _, address := range known.rules.sitemaps {
		if u, err := first.Parse(address); err == nil && u.Host == first.Host {
			own = append(own, u.String())
		}
	}
	if len(own) == 0 {
		own = []string{first.JoinPath("sitemap.xml").String()}
	}
	return own, nil
}

// sitemap reads a sitemap: the pages that it lists, or the sitemaps of an index.
func (v *visitor) sitemap(ctx context.Context, address string, accepts func(*url.URL) bool) (pages []*url.URL, more []string, err error) {
	limit := v.limit
	v.limit = maxSitemapBytes
	got, err := v.fetch(ctx, address, accepts)
	v.limit = limit
	if err != nil {
		return nil, nil, err
	}
	pages, more, err = parseSitemap(got.url, got.data)
	if err != nil {
		err = fmt.Errorf("%s: %w", remotefs.Redacted(address), err)
	}
	return pages, more, err
}

// parseSitemap reads a sitemap in XML or in text, possibly compressed.
func parseSitemap(base *url.URL, data []byte) (pages []*url.URL, more []string, err error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, nil, errors.New("is not a sitemap: it is damaged")
		}
		if data, err = readLimited(unpacked, "", maxSitemapBytes); err != nil {
			return nil, nil, errors.New("is not a sitemap: it is damaged or too large")
		}
	}
	if body := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))); !bytes.HasPrefix(body, []byte("<")) {
		return sitemapLines(base, string(body)), nil, nil
	}
	return sitemapXML(base, data)
}

// sitemapLines reads a sitemap that is a list of addresses.
func sitemapLines(base *url.URL, text string) []*url.URL {
	var pages []*url.URL
	for line := range strings.Lines(text) {
		if u, err := base.Parse(strings.TrimSpace(line)); err == nil && strings.TrimSpace(line) != "" && len(pages) < maxSitemapURLs {
			pages = append(pages, u)
		}
	}
	return pages
}

// sitemapXML reads a urlset or a sitemapindex.
func sitemapXML(base *url.URL, data []byte) (pages []*url.URL, more []string, err error) {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	decoder.Strict = false
	root, parent := "", ""
	for len(pages) < maxSitemapURLs {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, errors.New("is not a sitemap: it is not XML")
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := start.Name.Local; {
		case root == "":
			if root = name; root != "urlset" && root != "sitemapindex" {
				return nil, nil, fmt.Errorf("is not a sitemap: its first element is %s, not urlset or sitemapindex", root)
			}
		case name == "url" || name == "sitemap":
			parent = name
		case name == "loc" && start.Name.Space != "http://www.google.com/schemas/sitemap-image/1.1":
			var text string
			if err := decoder.DecodeElement(&text, &start); err != nil {
				return nil, nil, errors.New("is not a sitemap: it is not XML")
			}
			u, err := base.Parse(strings.TrimSpace(text))
			switch {
			case err != nil:
			case parent == "sitemap":
				more = append(more, u.String())
			default:
				pages = append(pages, u)
			}
		}
	}
	return pages, more, nil
}

// maxRobots is how many bytes of a robots.txt are read, as RFC 9309 recommends.
const maxRobots = 500 << 10

// maxCrawlDelay is the longest delay that a robots.txt can ask for.
const maxCrawlDelay = 30 * time.Second

// robots are the rules of a site for one program (RFC 9309).
type robots struct {
	rules    []robotsRule
	delay    time.Duration // between two requests; not part of the RFC, but usual
	sitemaps []string      // the addresses of sitemaps, for all programs
}

// robotsRule allows or forbids the paths that a pattern matches.
type robotsRule struct {
	pattern string
	allow   bool
}

// parseRobots reads the rules of the groups for a program, or else of those for all.
func parseRobots(text, agent string) *robots {
	own, all, sitemaps := &robots{}, &robots{}, []string(nil)
	var groups []*robots // those that the current lines belong to
	var hasOwn, inAgents bool
	lines := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(text, "\uFEFF")))
	lines.Buffer(nil, maxRobots+1)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		key, v, ok := strings.Cut(line, ":")
		if key, v = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(v); !ok {
			continue
		}
		switch key {
		case "user-agent":
			if !inAgents {
				groups = nil
			}
			inAgents = true
			switch {
			case v == "*":
				groups = append(groups, all)
			case strings.EqualFold(v, productOf(agent)):
				groups, hasOwn = append(groups, own), true
			}
			continue
		case "sitemap":
			sitemaps = append(sitemaps, v)
			continue
		}
		inAgents = false
		for _, g := range groups {
			g.add(key, v)
		}
	}
	chosen := all
	if hasOwn {
		chosen = own
	}
	chosen.sitemaps = sitemaps
	return chosen
}

// productOf returns the name of a program without version and comment.
func productOf(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	return strings.TrimSpace(name)
}

// add adds a line of a group.
func (r *robots) add(key, v string) {
	switch key {
	case "allow", "disallow":
		if v != "" { // an empty rule forbids nothing
			r.rules = append(r.rules, robotsRule{pattern: v, allow: key == "allow"})
		}
	case "crawl-delay":
		if seconds, err := strconv.ParseFloat(v, 64); err == nil && seconds > 0 {
			r.delay = time.Duration(min(seconds, maxCrawlDelay.Seconds()) * float64(time.Second))
		}
	}
}

// allows reports whether a page may be read: the longest pattern decides, and of equal
// ones the one that allows.
func (r *robots) allows(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	longest, allowed := -1, true
	for _, rule := range r.rules {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && matchesRobots(rule.pattern, path) {
			longest, allowed = n, rule.allow
		}
	}
	return allowed
}

// matchesRobots reports whether a pattern matches the beginning of a path. * is any text,
// and $ at the end of the pattern is the end of the path.
func matchesRobots(pattern, path string) bool {
	pattern, toEnd := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if toEnd && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return !toEnd || rest == ""
}

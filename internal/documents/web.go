package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
)

// web reads pages, and the pages that they link to.
type web struct {
	args    *spec.WebArgs
	env     Env
	exclude []*regexp.Regexp
}

func newSite(args *spec.WebArgs, env Env) (Source, error) {
	for _, address := range args.URLs {
		if _, err := webAddress(address); err != nil {
			return nil, err
		}
	}
	if len(args.URLs) == 0 {
		return nil, errors.New("urls is empty; add the pages to read")
	}
	exclude, err := compilePaths(args.Exclude)
	return &web{args: args, env: env, exclude: exclude}, err
}

// compilePaths compiles patterns of paths of pages.
func compilePaths(patterns []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for _, pattern := range patterns {
		compiled, err := compilePattern(strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return nil, err
		}
		all = append(all, compiled)
	}
	return all, nil
}

// link is a page to read.
type link struct {
	url   *url.URL
	depth int // how many links led to it
}

// Read reads the pages in the order in which they are found: first those of the
// arguments, then those that they link to. A first page that fails is an error of its
// document; a link that leads nowhere, to no text or to a forbidden page is skipped.
func (w *web) Read(ctx context.Context, emit Emit) error {
	visits, err := newVisitor(&w.args.VisitArgs, w.args.URLs[0], w.env)
	if err != nil {
		return err
	}
	defer visits.close()
	queue, seen, hosts, err := w.start()
	if err != nil {
		return err
	}
	accepts := func(u *url.URL) bool { return (!w.args.SameHost || hosts[u.Host]) && !isExcluded(w.exclude, u) }
	for read, skipped := 0, 0; len(queue) > 0 && read < w.args.MaxPages && skipped < maxSkipped*w.args.MaxPages; {
		next := queue[0]
		queue = queue[1:]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got, err := visits.fetch(ctx, next.url.String(), accepts)
		if err == nil && got.url.String() != next.url.String() && !addNew(seen, got.url.String()) {
			skipped++
			continue
		}
		var doc *Document
		if err == nil {
			doc, err = got.document(ctx, w.env.Limits)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && next.depth > 0 && isSkipped(err) {
			skipped++
			continue
		}
		read++
		if err := emit(doc, err); err != nil {
			return err
		}
		if err == nil && next.depth < w.args.MaxDepth {
			queue = appendLinks(queue, got, next.depth+1, seen, accepts)
		}
	}
	return nil
}

// start returns the pages of the arguments, their addresses and their hosts.
func (w *web) start() (queue []link, seen, hosts map[string]bool, err error) {
	seen, hosts = map[string]bool{}, map[string]bool{}
	for _, address := range w.args.URLs {
		u, err := webAddress(address)
		if err != nil {
			return nil, nil, nil, err
		}
		hosts[u.Host] = true
		if addNew(seen, u.String()) {
			queue = append(queue, link{url: u})
		}
	}
	return queue, seen, hosts, nil
}

// addNew adds an address to those seen, and reports whether it was not among them.
func addNew(seen map[string]bool, address string) bool {
	added := !seen[address]
	seen[address] = true
	return added
}

// isSkipped reports whether the failure of a linked page is no failure of the source: the page is
// not to be read, now or later. A page that a later reading may get has failed; without its error
// it would be taken for removed.
func isSkipped(err error) bool {
	var status *statusError
	var kind *format.Error
	return errors.Is(err, errForbidden) || errors.Is(err, errElsewhere) || errors.As(err, &kind) || errors.As(err, &status) && !status.isTemporary()
}

// isExcluded reports whether a pattern matches the path of a page or of a folder above it.
func isExcluded(patterns []*regexp.Regexp, u *url.URL) bool {
	for at := strings.Trim(u.Path, "/"); at != "" && at != "."; at = path.Dir(at) {
		if slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(at) }) {
			return true
		}
	}
	return false
}

// maxSkipped is how many links are tried in vain for each page of max_pages.
const maxSkipped = 10

// maxQueue is how many pages can wait to be read, which bounds the memory for a site with
// endless links.
const maxQueue = 100_000

// appendLinks appends the pages that a page links to and that were not seen before.
func appendLinks(queue []link, from *page, depth int, seen map[string]bool, accepts func(*url.URL) bool) []link {
	if !strings.Contains(from.mediaType, "html") && !format.IsHTML(from.data) {
		return queue
	}
	for _, u := range linksOf(from.url, from.data) {
		if len(seen) >= maxQueue {
			break
		}
		if key := u.String(); !seen[key] && accepts(u) {
			seen[key] = true
			queue = append(queue, link{url: u, depth: depth})
		}
	}
	return queue
}

// linksOf returns the addresses of a page's links in their order, without links marked
// nofollow.
func linksOf(base *url.URL, data []byte) []*url.URL {
	var links []*url.URL
	tokens := html.NewTokenizer(bytes.NewReader(data))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			if !errors.Is(tokens.Err(), io.EOF) {
				return nil // cannot happen for bytes in memory
			}
			return links
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			href := format.Attribute(token.Attr, "href")
			switch {
			case href == "":
			case token.Data == "base":
				if u, err := base.Parse(href); err == nil {
					base = u
				}
			case token.Data == "a" && !strings.Contains(strings.ToLower(format.Attribute(token.Attr, "rel")), "nofollow"):
				if u, err := base.Parse(strings.TrimSpace(href)); err == nil {
					if u, err = webAddress(u.String()); err == nil {
						links = append(links, u)
					}
				}
			}
		}
	}
}

// maxRedirects is how many redirects are followed from an address.
const maxRedirects = 5

// visitor requests pages within the limits of a reader, one at a time. It reads the
// robots.txt of each site before its first page.
type visitor struct {
	client  *http.Client
	agent   string
	delay   time.Duration
	timeout time.Duration
	limit   int64
	sites   map[string]*site // by scheme and host
}

// site is what is known about a server.
type site struct {
	rules   *robots
	failure error     // why no page may be read: the server failed to send its rules
	last    time.Time // of the last request
}

// newVisitor makes a visitor. Credentials are sent to the server of first only.
func newVisitor(args *spec.VisitArgs, first string, env Env) (*visitor, error) {
	delay, err := time.ParseDuration(args.Delay)
	if err != nil {
		return nil, fmt.Errorf("delay: %w", err)
	}
	timeout, err := time.ParseDuration(args.Timeout)
	if err != nil {
		return nil, fmt.Errorf("timeout: %w", err)
	}
	if _, err := webAddress(first); err != nil {
		return nil, err
	}
	client, err := env.HTTP(first, args.AllowPrivate)
	if err != nil {
		return nil, err
	}
	return &visitor{client: client, agent: args.UserAgent, delay: delay, timeout: timeout, limit: int64(args.MaxPageBytes), sites: map[string]*site{}}, nil
}

func (v *visitor) close() { v.client.CloseIdleConnections() }

// webAddress parses the address of a page. Its fragment is removed.
func webAddress(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an http or https address", remotefs.Redacted(text))
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// page is an answer of a server.
type page struct {
	url       *url.URL // after redirects
	mediaType string
	modified  string // the header Last-Modified
	data      []byte
}

// errForbidden reports a page that the robots.txt of its site forbids.
var errForbidden = errors.New("the site's robots.txt forbids it")

// errElsewhere reports a redirect to a page that is not read.
var errElsewhere = errors.New("which is not read")

// fetch requests a page. accepts decides whether a redirect is followed; nil follows all.
func (v *visitor) fetch(ctx context.Context, address string, accepts func(*url.URL) bool) (*page, error) {
	u, err := webAddress(address)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		s, err := v.site(ctx, u)
		if err != nil {
			return nil, explainPage(u, err)
		}
		if s.failure != nil {
			return nil, explainPage(u, s.failure)
		}
		if !s.rules.allows(u) {
			return nil, explainPage(u, errForbidden)
		}
		if err := s.wait(ctx, max(v.delay, s.rules.delay)); err != nil {
			return nil, err
		}
		got, next, err := v.get(ctx, u, v.limit)
		if err != nil {
			return nil, explainPage(u, err)
		}
		if next == nil {
			return got, nil
		}
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, explainPage(u, errors.New("redirects from https to http"))
		}
		if accepts != nil && !accepts(next) {
			return nil, explainPage(u, fmt.Errorf("redirects to %s, %w", remotefs.Redacted(next.String()), errElsewhere))
		}
		u = next
	}
	return nil, explainPage(u, fmt.Errorf("stopped after %d redirects", maxRedirects))
}

func explainPage(u *url.URL, err error) error {
	return fmt.Errorf("%s: %w", remotefs.Redacted(u.String()), err)
}

// wait waits until the next request to the site is due.
func (s *site) wait(ctx context.Context, delay time.Duration) error {
	if rest := time.Until(s.last.Add(delay)); delay > 0 && rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	s.last = time.Now()
	return nil
}

// site returns what is known about the server of a page, after reading its robots.txt. A
// site without one allows everything; one whose server fails, nothing (RFC 9309).
func (v *visitor) site(ctx context.Context, u *url.URL) (*site, error) {
	key := u.Scheme + "://" + u.Host
	if known := v.sites[key]; known != nil {
		return known, nil
	}
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	s := &site{rules: &robots{}}
	for range maxRedirects + 1 {
		got, next, err := v.get(ctx, at, maxRobots)
		var status *statusError
		switch {
		case errors.As(err, &status) && status.code >= 500:
			s.failure = fmt.Errorf("reading the site's robots.txt: %w", err)
		case errors.As(err, &status): // the site has no rules
		case errors.Is(err, errTooLarge):
			s.rules = parseRobots(string(got.data), v.agent)
		case err != nil:
			return nil, err
		case next != nil && next.Host == u.Host:
			at = next
			continue
		case next == nil:
			s.rules = parseRobots(string(got.data), v.agent)
		}
		break
	}
	v.sites[key] = s
	return s, nil
}

// statusError reports the status of an answer.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code)))
}

// isTemporary reports whether a later request may get the page.
func (e *statusError) isTemporary() bool {
	return e.code >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, e.code)
}

// errTooLarge reports an answer that is longer than the limit.
var errTooLarge = errors.New("is too large")

// get sends one request. It returns the target of a redirect instead of a page. With
// errTooLarge it also returns the first bytes.
func (v *visitor) get(ctx context.Context, u *url.URL, limit int64) (*page, *url.URL, error) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, nil, errors.New("is not a valid address")
	}
	req.Header.Set("User-Agent", v.agent)
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5")
	resp, err := v.client.Do(req)
	if err != nil {
		return nil, nil, errors.New(httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // the rest is not needed
	if location := resp.Header.Get("Location"); resp.StatusCode >= 300 && resp.StatusCode < 400 && location != "" {
		next, err := u.Parse(location)
		if err == nil {
			next, err = webAddress(next.String())
		}
		return nil, next, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, &statusError{resp.StatusCode}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, nil, errors.New(httpx.Reason(err))
	}
	got := &page{url: u, mediaType: resp.Header.Get("Content-Type"), modified: resp.Header.Get("Last-Modified"), data: data}
	if int64(len(data)) > limit {
		got.data = data[:limit]
		return got, nil, fmt.Errorf("%w: it has more than %d bytes", errTooLarge, limit)
	}
	return got, nil, nil
}

// file returns the page as a file with its metadata.
func (p *page) file() *file {
	address := remotefs.Redacted(p.url.String())
	if p.url.RawQuery != "" && p.url.User == nil {
		address = p.url.String()
	}
	f := &file{name: address, id: p.url.String(), uri: address, mediaType: p.mediaType, data: p.data,
		metadata: map[string]any{"url": address, "file_name": pageName(p.url)}}
	if kind, _, _ := strings.Cut(p.mediaType, ";"); kind != "" {
		f.metadata["file_type"] = strings.TrimSpace(kind)
	}
	if at, err := http.ParseTime(p.modified); err == nil {
		f.metadata["last_modified_date"] = at.UTC().Format(time.DateOnly)
	}
	return f
}

// pageName returns the last part of the path of a page, or its host.
func pageName(u *url.URL) string {
	if name := baseName(u.Path); name != "" {
		return name
	}
	return u.Hostname()
}

// document converts a page to a document.
func (p *page) document(ctx context.Context, limits format.Limits) (*Document, error) {
	f := p.file()
	name := pageName(p.url)
	if kind, _, _ := strings.Cut(p.mediaType, ";"); strings.TrimSpace(kind) == "text/html" {
		name = "page.html" // such as /download.php
	}
	result, err := format.Convert(ctx, format.File{Name: name, MediaType: p.mediaType, Data: p.data}, limits)
	var known *format.Error
	if errors.As(err, &known) {
		return nil, &format.Error{Name: f.name, Kind: known.Kind, Reason: known.Reason, Err: known.Err}
	}
	if err != nil {
		return nil, err
	}
	metadata := maps.Clone(f.metadata)
	if result.Title != "" {
		metadata["title"] = result.Title
	}
	if offsets := result.PageOffsets(); len(offsets) > 0 {
		metadata["page_offsets"] = offsets
	}
	addUnknown(metadata, result.UnknownCharacters())
	return &Document{ID: documentID(f.id), Name: pageName(p.url), URI: f.uri, Text: result.Text, Metadata: metadata}, nil
}

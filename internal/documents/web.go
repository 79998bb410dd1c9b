package documents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/qtype-dev/qtype/internal/documents/format"
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

package documents

import (
	"bufio"
	"net/url"
	"strconv"
	"strings"
	"time"
)

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

package httpx

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// markup finds the begin of a page of a server or a proxy, or of an XML document; titles finds the text
// that says what it is about; userinfo finds the user and password of a URL.
var (
	markup = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s\x{feff}]*<(?:!doctype html|html|\?xml|head|body|title|h1|error)\b|<!doctype html|<html\b|<\?xml`)
	})
	titles = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)<(?:title|h1|message)\b[^>]*>([^<]*[^<\s][^<]*)<`)
	})
	userinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@"'<>]+@`) })
)

// ForeignCoding returns the content coding of an answer that no client of this program requests, empty
// for none. Clients have undone gzip, and some servers send other words, such as utf-8.
func ForeignCoding(h http.Header) string {
	coding := strings.ToLower(h.Get("Content-Encoding"))
	if slices.Contains([]string{"br", "zstd", "deflate", "compress", "gzip", "x-gzip"}, coding) {
		return coding
	}
	return ""
}

// Excerpt returns a text of a server for an error message, on one line that is cut after limit
// characters: of a page its title, empty if it has none. URLs are without users and passwords.
func Excerpt(text string, limit int) string {
	if page := markup().FindStringIndex(text); page != nil {
		title := ""
		if found := titles().FindStringSubmatch(text[page[0]:]); found != nil {
			title = html.UnescapeString(found[1])
		}
		text = text[:page[0]] + title
	}
	return SingleLine(userinfo().ReplaceAllString(text, "${1}"), limit)
}

// IsPage reports whether a text of a server is a web page or an XML document.
func IsPage(text string) bool {
	page := markup().FindStringIndex(text)
	return page != nil && page[0] == 0
}

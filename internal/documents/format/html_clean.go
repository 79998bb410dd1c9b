package format

import (
	"math"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Main content, in three steps: elements that are never content are removed; then the
// element that the page marks as its main content is taken, if it has enough of the
// text; else navigation and the like is removed from the whole page. There is no
// statistical model: what a page does not mark and what is not mostly links stays.

// minMainShare is the share of a page's text that its marked main content needs, so
// that an article element in a list of many is not taken for the page.
const minMainShare = 0.25

// cleanPage removes what is not content and returns the root of what remains.
func cleanPage(root *html.Node, mainOnly bool) *html.Node {
	body := find(root, atom.Body)
	if body == nil {
		body = root
	}
	remove(body, isNeverContent)
	if !mainOnly {
		return body
	}
	j := &judge{visits: maxVisits}
	content := j.mainElement(body)
	j.whole = content == body
	remove(content, j.isBoilerplate)
	return content
}

// remove removes the elements below n for which drop reports true.
func remove(n *html.Node, drop func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && drop(c):
			n.RemoveChild(c)
		default:
			remove(c, drop)
		}
		c = next
	}
}

// isNeverContent reports whether an element is not text for readers on any page.
func isNeverContent(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Canvas,
		atom.Svg, atom.Button, atom.Select, atom.Input, atom.Textarea, atom.Datalist, atom.Dialog, atom.Head, atom.Audio, atom.Video:
		return true
	}
	style := strings.ToLower(strings.ReplaceAll(attribute(n, "style"), " ", ""))
	if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
		return true
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" && !strings.EqualFold(a.Val, "until-found") {
			return true
		}
	}
	return false
}

// mainElement returns the element with the main content: <main> or role=main, else the
// only or largest article; body if none has enough text.
func (j *judge) mainElement(body *html.Node) *html.Node {
	total := j.textLength(body)
	var best *html.Node
	bestLength := 0
	articles := 0
	for d := range body.Descendants() {
		if d.Type != html.ElementNode {
			continue
		}
		isMain := d.DataAtom == atom.Main || attribute(d, "role") == "main"
		if !isMain && d.DataAtom != atom.Article {
			continue
		}
		length := j.textLength(d)
		if isMain && float64(length) >= minMainShare*float64(total) {
			return d
		}
		articles++
		if length > bestLength {
			best, bestLength = d, length
		}
	}
	if articles == 1 && float64(bestLength) >= minMainShare*float64(total) || articles > 1 && float64(bestLength) >= 0.6*float64(total) {
		return best
	}
	return body
}

// wordLength returns the number of characters of a text, white space excluded.
func wordLength(s string) int {
	n := 0
	for word := range strings.FieldsSeq(s) {
		n += utf8.RuneCountInString(word)
	}
	return n
}

// maxVisits is how many nodes are visited to measure the text of elements. Elements that
// contain each other are measured again and again.
const maxVisits = 10_000_000

// judge decides which elements are not content.
type judge struct {
	whole  bool // the page has no marked main content
	visits int  // nodes that may still be visited
}

// isBoilerplate reports whether an element of a page is navigation, or a header or
// footer of the site. Headers and footers within an article or main element belong to
// the content, if there is one.
func (j *judge) isBoilerplate(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Menu:
		return true
	case atom.Aside, atom.Footer:
		return j.whole || n.DataAtom == atom.Aside && j.mostlyLinks(n)
	case atom.Header:
		return j.whole && !j.hasTitle(n)
	}
	switch strings.ToLower(attribute(n, "role")) {
	case "navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "toolbar", "dialog", "alertdialog":
		return !j.hasTitle(n)
	}
	if strings.EqualFold(attribute(n, "aria-hidden"), "true") && j.textLength(n) < 100 {
		return true
	}
	return hasBoilerplateName(n) && (j.textLength(n) < 300 || j.mostlyLinks(n)) && !j.hasTitle(n)
}

// boilerplateNames are words of classes and ids of elements that are not content.
var boilerplateNames = []string{
	"nav", "navbar", "navigation", "menu", "sidebar", "breadcrumb", "breadcrumbs", "footer", "cookie", "cookies", "consent",
	"newsletter", "subscribe", "share", "sharing", "social", "related", "recommended", "advert", "advertisement", "ads", "ad",
	"promo", "popup", "modal", "skip", "skiplink", "pagination", "pager", "toc", "headerlink", "comments",
}

// hasBoilerplateName reports whether a class or the id of an element has one of
// boilerplateNames as one of its words.
func hasBoilerplateName(n *html.Node) bool {
	if n.DataAtom == atom.Body || n.DataAtom == atom.Html || n.DataAtom == atom.Main || n.DataAtom == atom.Article {
		return false
	}
	names := strings.ToLower(attribute(n, "class") + " " + attribute(n, "id"))
	for word := range strings.FieldsFuncSeq(names, func(r rune) bool { return r == ' ' || r == '-' || r == '_' || r == '\n' || r == '\t' }) {
		for _, name := range boilerplateNames {
			if word == name {
				return true
			}
		}
	}
	return false
}

// visit counts a node and reports whether more may be visited.
func (j *judge) visit(n *html.Node) bool {
	j.visits -= 1 + len(n.Data)/8
	return j.visits >= 0
}

// hasTitle reports whether an element contains a heading of the first level.
func (j *judge) hasTitle(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.DataAtom == atom.H1 || !j.visit(d) {
			return true
		}
	}
	return false
}

// textLength returns the number of characters of the text below n, white space excluded;
// a large number if the limit of visits is exceeded.
func (j *judge) textLength(n *html.Node) int {
	length := 0
	for d := range n.Descendants() {
		if !j.visit(d) {
			return math.MaxInt
		}
		if d.Type == html.TextNode {
			length += wordLength(d.Data)
		}
	}
	return length
}

// mostlyLinks reports whether more than half of the text of an element is links.
func (j *judge) mostlyLinks(n *html.Node) bool {
	linked, total := 0, 0
	for d := range n.Descendants() {
		if !j.visit(d) {
			return false
		}
		switch {
		case d.Type == html.TextNode:
			total += wordLength(d.Data)
		case d.DataAtom == atom.A:
			linked += j.textLength(d)
		}
	}
	return linked*2 > total && j.visits >= 0
}

// resolve returns a reference relative to an address.
func resolve(base, reference string) string {
	b, err := url.Parse(base)
	if err != nil {
		return reference
	}
	r, err := b.Parse(strings.TrimSpace(reference))
	if err != nil {
		return reference
	}
	return r.String()
}

package format

import (
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
	content := mainElement(body)
	whole := content == body
	remove(content, func(n *html.Node) bool { return isBoilerplate(n, whole) })
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
func mainElement(body *html.Node) *html.Node {
	total := textLength(body)
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
		length := textLength(d)
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

// textLength returns the number of characters of the text below n, white space excluded.
func textLength(n *html.Node) int {
	length := 0
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			for _, word := range strings.Fields(d.Data) {
				length += utf8.RuneCountInString(word)
			}
		}
	}
	return length
}

// isBoilerplate reports whether an element of a page is navigation, or a header or
// footer of the site. Headers and footers within an article or main element belong to
// the content; whole reports that there is none, so that the page is judged as a whole.
func isBoilerplate(n *html.Node, whole bool) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Menu:
		return true
	case atom.Aside, atom.Footer:
		return whole || n.DataAtom == atom.Aside && mostlyLinks(n)
	case atom.Header:
		return whole && find(n, atom.H1) == nil
	}
	switch strings.ToLower(attribute(n, "role")) {
	case "navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "toolbar", "dialog", "alertdialog":
		return find(n, atom.H1) == nil
	}
	if strings.EqualFold(attribute(n, "aria-hidden"), "true") && textLength(n) < 100 {
		return true
	}
	return hasBoilerplateName(n) && (mostlyLinks(n) || textLength(n) < 300) && find(n, atom.H1) == nil
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

// mostlyLinks reports whether more than half of the text of an element is links.
func mostlyLinks(n *html.Node) bool {
	linked := 0
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.DataAtom == atom.A {
			linked += textLength(d)
		}
	}
	return linked*2 > textLength(n)
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

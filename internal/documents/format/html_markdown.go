package format

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// pageWriter writes the elements of a page as Markdown.
type pageWriter struct {
	*writer
	base   string // the address to which links are relative; empty to leave them unchanged
	text   inline // the paragraph that is being collected
	inCell int    // the depth of table cells, in which blocks are joined
	inItem int    // the depth of list items
}

// mood is what inline elements around a text decide.
type mood struct {
	style style
	link  string
}

// flush writes the collected paragraph.
func (p *pageWriter) flush() {
	if p.inCell > 0 {
		p.text.add(" ", 0, "")
		return
	}
	p.paragraph(&p.text)
	p.text = inline{}
}

// children writes the nodes below n.
func (p *pageWriter) children(n *html.Node, m mood) {
	for c := n.FirstChild; c != nil && p.err == nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			p.text.add(strings.ReplaceAll(c.Data, lineBreak, " "), m.style, m.link)
		case html.ElementNode:
			p.element(c, m)
		}
	}
}

// element writes an element.
func (p *pageWriter) element(n *html.Node, m mood) {
	if p.inlineElement(n, m) {
		return
	}
	if p.stopped() {
		return
	}
	p.flush()
	switch {
	case p.inCell > 0:
		p.children(n, m)
	case n.DataAtom == atom.Pre:
		p.code(codeLanguage(n), textWithBreaks(n))
	case n.DataAtom == atom.Hr:
		p.rule()
	case n.DataAtom == atom.Ul, n.DataAtom == atom.Ol:
		p.list(n)
	case n.DataAtom == atom.Blockquote, n.DataAtom == atom.Dd:
		prefix := "> "
		if n.DataAtom == atom.Dd {
			prefix = ""
		}
		p.push(container{first: prefix, rest: prefix, gap: true})
		p.children(n, mood{})
		p.flush()
		p.pop()
	case n.DataAtom == atom.Table && isDataTable(n):
		p.pageTable(n)
	case headingLevel(n) > 0:
		p.pageHeading(n)
	default:
		p.children(n, mood{})
	}
	p.flush()
}

// inlineElement writes an element that is part of a paragraph; it reports false for
// other elements.
func (p *pageWriter) inlineElement(n *html.Node, m mood) bool {
	switch n.DataAtom {
	case atom.B, atom.Strong:
		m.style |= bold
	case atom.I, atom.Em, atom.Cite, atom.Dfn:
		m.style |= italic
	case atom.S, atom.Del, atom.Strike:
		m.style |= struck
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt, atom.Var:
		m.style |= code
	case atom.A:
		if m.link = p.target(n); isAnchorMark(n) {
			return true
		}
		if hasBlock(n) { // a link around blocks would need brackets across lines
			m.link = ""
		}
	case atom.Br:
		if p.inCell > 0 {
			p.text.add(" ", 0, "")
		} else {
			p.text.add(lineBreak, 0, "")
		}
		return true
	case atom.Img:
		p.text.add(collapseSpace(attribute(n, "alt")), m.style, m.link)
		return true
	case atom.Span, atom.Font, atom.Small, atom.Big, atom.U, atom.Ins, atom.Mark, atom.Abbr, atom.Time, atom.Label, atom.Sub,
		atom.Sup, atom.Q, atom.Data, atom.Bdi, atom.Bdo, atom.Acronym, atom.Wbr, atom.Ruby, atom.Rb, atom.Rt, atom.Rp:
	case 0: // an element that HTML does not have
		if hasBlock(n) {
			return false
		}
	default:
		return false
	}
	p.children(n, m)
	return true
}

// target returns the absolute target of a link, empty if it leads nowhere.
func (p *pageWriter) target(a *html.Node) string {
	href := strings.TrimSpace(attribute(a, "href"))
	lower := strings.ToLower(href)
	if href == "" || href[0] == '#' || strings.HasPrefix(lower, "javascript:") || strings.HasPrefix(lower, "data:") || len(href) > maxLink {
		return ""
	}
	if p.base != "" {
		return resolve(p.base, href)
	}
	return href
}

// maxLink is the maximum length of a link's target.
const maxLink = 4096

// isAnchorMark reports whether a link is only the mark of a heading ("¶", "#").
func isAnchorMark(a *html.Node) bool {
	text := strings.TrimSpace(textOf(a))
	return strings.HasPrefix(strings.TrimSpace(attribute(a, "href")), "#") && (text == "¶" || text == "#" || text == "§" || text == "🔗" || text == "")
}

// hasBlock reports whether an inline element contains blocks.
func hasBlock(n *html.Node) bool {
	for d := range n.Descendants() {
		switch d.DataAtom {
		case atom.Div, atom.P, atom.Ul, atom.Ol, atom.Table, atom.Pre, atom.Section, atom.Article, atom.H1, atom.H2, atom.H3, atom.H4,
			atom.H5, atom.H6, atom.Blockquote:
			return true
		}
	}
	return false
}

// headingLevel returns the level of a heading, 0 for other elements.
func headingLevel(n *html.Node) int {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return int(n.Data[1] - '0')
	}
	if attribute(n, "role") == "heading" {
		if level, err := strconv.Atoi(attribute(n, "aria-level")); err == nil {
			return min(max(level, 1), 6)
		}
		return 2
	}
	return 0
}

// pageHeading writes a heading.
func (p *pageWriter) pageHeading(n *html.Node) {
	p.inCell++ // a heading is one line
	p.children(n, mood{})
	p.inCell--
	p.heading(headingLevel(n), &p.text)
	p.text = inline{}
}

// list writes the items of a list. A list in a list follows its item without a blank
// line.
func (p *pageWriter) list(n *html.Node) {
	number, err := strconv.Atoi(attribute(n, "start"))
	if err != nil {
		number = 1
	}
	first := true
	for c := n.FirstChild; c != nil && !p.stopped(); c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		if c.DataAtom != atom.Li { // invalid, but written, for example a list in a list
			p.element(c, mood{})
			continue
		}
		marker := "- "
		if n.DataAtom == atom.Ol {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		p.push(container{first: marker, rest: strings.Repeat(" ", len(marker)), gap: first && p.inItem == 0})
		p.inItem++
		p.children(c, mood{})
		p.flush()
		p.inItem--
		p.pop()
		first = false
	}
}

// codeLanguage returns the language of a code block by the class that highlighters use.
func codeLanguage(pre *html.Node) string {
	for _, n := range []*html.Node{pre, find(pre, atom.Code), pre.Parent} {
		if n == nil {
			continue
		}
		for class := range strings.FieldsSeq(attribute(n, "class")) {
			for _, prefix := range []string{"language-", "lang-", "highlight-", "highlight-source-"} {
				if language, ok := strings.CutPrefix(class, prefix); ok && !strings.ContainsAny(language, "`~") && len(language) < 30 && language != "default" {
					return language
				}
			}
		}
	}
	return ""
}

// textWithBreaks returns the text of preformatted text.
func textWithBreaks(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			b.WriteString(d.Data)
		case d.DataAtom == atom.Br:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

package splitter

import (
	"context"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/qtype-dev/qtype/spec"
)

// htmlText is HTMLNodeParser: a chunk is the text of consecutive elements with the same
// tag. Its range is that of the elements.
type htmlText struct{ tags []string }

func newHTML(args *spec.HTMLArgs) (Splitter, error) { return htmlText{args.Tags}, nil }

// maxOpenElements bounds the nesting: elements that are deeper belong to their ancestor.
const maxOpenElements = 256

// htmlElement is an element of a page.
type htmlElement struct {
	name       string
	listed     bool // its tag is one of those that are kept
	start, end int
	parts      []htmlPart // of a listed element
}

// htmlPart is a text in a listed element.
type htmlPart struct {
	child *htmlElement // the element without a listed tag that has the text; nil for none
	text  string
}

// text returns the text of an element, with a line for each text and each child.
func (e *htmlElement) text() string {
	var b strings.Builder
	for i := 0; i < len(e.parts); {
		n := 1
		for e.parts[i].child != nil && i+n < len(e.parts) && e.parts[i+n].child == e.parts[i].child {
			n++
		}
		var line strings.Builder
		for _, part := range e.parts[i : i+n] {
			line.WriteString(part.text)
		}
		i += n
		if text := strings.TrimFunc(line.String(), isTrimmed); text != "" {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Split implements Splitter.
func (h htmlText) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		elements, err := h.elements(ctx, d.Text)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		for len(elements) > 0 {
			n := 1
			for n < len(elements) && elements[n].name == elements[0].name {
				n++
			}
			if chunk, ok := joinElements(elements[:n]); ok && !yield(chunk, nil) {
				return
			}
			elements = elements[n:]
		}
	}
}

// joinElements returns the chunk of some elements, false if they have no text.
func joinElements(elements []*htmlElement) (Chunk, bool) {
	var lines []string
	end := 0
	for _, e := range elements {
		lines = append(lines, strings.TrimFunc(e.text(), isTrimmed))
		end = max(end, e.end)
	}
	text := strings.TrimFunc(strings.Join(lines, "\n"), isTrimmed)
	return Chunk{Text: text, Start: elements[0].start, End: end, Metadata: []Entry{{"tag", elements[0].name}}}, text != ""
}

// elements returns the elements with the listed tags in the order of their beginnings.
func (h htmlText) elements(ctx context.Context, text string) ([]*htmlElement, error) {
	p := htmlParser{tags: h.tags}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for tokens.Next() != html.ErrorToken {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		start := p.at
		p.at += len(tokens.Raw())
		switch token := tokens.Token(); token.Type {
		case html.StartTagToken:
			if token.Data == "noscript" {
				tokens.NextIsNotRawText() // what a reader without scripts sees
			}
			p.open(token.Data, start)
		case html.EndTagToken:
			p.close(token.Data)
		case html.TextToken:
			p.add(token.Data)
		}
	}
	for len(p.stack) > 0 {
		p.pop()
	}
	return p.found, nil
}

// htmlParser keeps the open elements of a page.
type htmlParser struct {
	tags  []string
	at    int // end of the current token
	stack []*htmlElement
	found []*htmlElement
}

// voidElements have no content.
var voidElements = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true,
	"input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true}

func (p *htmlParser) open(name string, start int) {
	e := &htmlElement{name: name, listed: slices.Contains(p.tags, name), start: start, end: p.at}
	if e.listed {
		p.found = append(p.found, e)
	}
	if !voidElements[name] && len(p.stack) < maxOpenElements {
		p.stack = append(p.stack, e)
	}
}

// close ends the innermost element of a name and those in it.
func (p *htmlParser) close(name string) {
	if !slices.ContainsFunc(p.stack, func(e *htmlElement) bool { return e.name == name }) {
		return
	}
	for p.stack[len(p.stack)-1].name != name {
		p.pop()
	}
	p.pop()
}

// pop ends the innermost element.
func (p *htmlParser) pop() {
	last := len(p.stack) - 1
	p.stack[last].end = p.at
	p.stack = p.stack[:last]
}

// add adds a text to the innermost listed element. White space between elements is one
// character, except in preformatted text.
func (p *htmlParser) add(text string) {
	if strings.Trim(text, " \t\n\f\r") == "" && !slices.ContainsFunc(p.stack, func(e *htmlElement) bool { return e.name == "pre" || e.name == "textarea" }) {
		if strings.Contains(text, "\n") {
			text = "\n"
		} else {
			text = " "
		}
	}
	var child *htmlElement
	for i := len(p.stack) - 1; i >= 0; i-- {
		e := p.stack[i]
		if e.name == "script" || e.name == "style" {
			return
		}
		if e.listed {
			e.parts = append(e.parts, htmlPart{child, text})
			return
		}
		child = e
	}
}

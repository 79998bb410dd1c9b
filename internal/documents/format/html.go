package format

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// convertHTML returns the main content of a page as Markdown.
func convertHTML(ctx context.Context, j *job) (*Result, error) {
	declared := declaredCharset(j.file)
	if declared == "" {
		declared = metaCharset(j.file.Data)
	}
	text, err := toUTF8(j.file.Data, declared)
	if err != nil {
		return nil, err
	}
	w := j.writer(ctx)
	title, err := writePage(w, text, pageOptions{base: j.file.address(), main: true})
	if err != nil {
		return nil, err
	}
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = title
	return result, nil
}

// metaCharset returns the charset that a page declares in its first kilobyte.
func metaCharset(data []byte) string {
	_, name, certain := charset.DetermineEncoding(data[:min(len(data), 1024)], "")
	if !certain && name == "windows-1252" { // the default of browsers
		return ""
	}
	return name
}

// address returns the address to which the links of a page are relative, empty if it is
// unknown.
func (f File) address() string {
	if f.Base != "" {
		return f.Base
	}
	if strings.HasPrefix(f.Name, "http://") || strings.HasPrefix(f.Name, "https://") {
		return f.Name
	}
	return ""
}

// pageOptions say how a page is converted.
type pageOptions struct {
	base string // the address to which links are relative; empty to leave them unchanged
	main bool   // keep only the main content; false for mail and books
}

// writePage writes a page in UTF-8 and returns its title.
func writePage(w *writer, text string, opts pageOptions) (title string, err error) {
	if err := checkTags(w.ctx, text); err != nil {
		return "", err
	}
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", errorf(Damaged, "cannot be read as HTML: its elements are nested too deeply")
	}
	if w.stopped() {
		return "", w.err
	}
	title = collapseSpace(textOf(find(root, atom.Title)))
	content := cleanPage(root, opts.main)
	if title == "" {
		title = collapseSpace(textOf(find(content, atom.H1)))
	}
	if element := find(root, atom.Base); element != nil && opts.base != "" {
		opts.base = resolve(opts.base, attribute(element, "href"))
	}
	p := &pageWriter{writer: w, base: opts.base}
	p.children(content, mood{})
	p.flush()
	return title, w.err
}

// find returns the first element of a type below n, nil if there is none.
func find(n *html.Node, element atom.Atom) *html.Node {
	if n == nil {
		return nil
	}
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.DataAtom == element {
			return d
		}
	}
	return nil
}

// attribute returns the value of an attribute, empty if there is none.
func attribute(n *html.Node, key string) string { return Attribute(n.Attr, key) }

// Attribute returns the value of one of the attributes of an element, empty if it has none of the
// name.
func Attribute(all []html.Attribute, key string) string {
	for _, a := range all {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text below n.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b bytes.Buffer
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// collapseSpace replaces each sequence of white space by one space and trims the ends.
func collapseSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// maxNodes is the maximum number of nodes of a page.
const maxNodes = 3_000_000

// checkTags returns an error if the tree of a page could become too large. The parser
// repeats open formatting elements in each later block, so a small text can make a large
// tree.
func checkTags(ctx context.Context, text string) error {
	nodes, open := 0, 0
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return nil
		}
		if nodes++; kind == html.StartTagToken || kind == html.EndTagToken {
			name, _ := z.TagName()
			switch formatting := isFormatting(atom.Lookup(name)); {
			case formatting && kind == html.StartTagToken:
				open = min(open+1, 512) // the depth that the parser allows
			case formatting:
				open = max(open-1, 0)
			case kind == html.StartTagToken:
				nodes += open
			}
		}
		if nodes > maxNodes {
			return errorf(TooLarge, "has more than %d elements and texts", maxNodes)
		}
		if nodes%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// isFormatting reports whether the parser repeats an element that is not closed.
func isFormatting(element atom.Atom) bool {
	switch element {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

// maxSpan is the maximum number of columns that a cell may cover.
const maxSpan = 100

// isDataTable reports whether a table has data and does not merely arrange the page: it
// has no table in it and at least two cells in some row.
func isDataTable(table *html.Node) bool {
	wide := false
	for d := range table.Descendants() {
		switch d.DataAtom {
		case atom.Table, atom.Pre, atom.H1, atom.H2:
			return false
		case atom.Tr:
			cells := 0
			for c := d.FirstChild; c != nil; c = c.NextSibling {
				if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
					cells++
				}
			}
			wide = wide || cells > 1
		}
	}
	return wide && attribute(table, "role") != "presentation"
}

// pageTable writes a table. The text of a cell that covers several columns or rows is
// in the first of them.
func (p *pageWriter) pageTable(table *html.Node) {
	if caption := find(table, atom.Caption); caption != nil {
		p.children(caption, mood{})
		p.flush()
	}
	var rows [][]string
	covered := map[[2]int]bool{} // cells that one above covers
	for d := range table.Descendants() {
		if d.DataAtom == atom.Tr && !p.stopped() {
			rows = append(rows, p.cells(d, len(rows), covered))
		}
	}
	p.table(rows)
}

// cells returns the texts of a row.
func (p *pageWriter) cells(tr *html.Node, number int, covered map[[2]int]bool) []string {
	var row []string
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		for covered[[2]int{number, len(row)}] {
			row = append(row, "")
		}
		p.inCell++
		p.children(c, mood{})
		p.inCell--
		columns, rows := span(c, "colspan"), span(c, "rowspan")
		for i := range columns {
			for below := 1; below < rows && len(covered) < 10_000; below++ {
				covered[[2]int{number + below, len(row) + i}] = true
			}
		}
		row = append(row, p.text.markdown())
		p.text = inline{}
		for range columns - 1 {
			row = append(row, "")
		}
	}
	return row
}

func span(cell *html.Node, key string) int {
	n, err := strconv.Atoi(attribute(cell, key))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxSpan)
}

// Package pdf reads the text of PDF files in reading order: columns one after the other,
// lines joined to paragraphs, with the size of the text, by which a caller recognizes
// headings, and rows of tables.
//
// It reads text only. Files may be damaged: tables of objects are rebuilt, and what
// cannot be decoded is left out. What a file can cost is limited by Limits and by the
// context, and the functions do not keep state.
package pdf

import (
	"context"
	"slices"
	"strings"
	"unicode/utf16"
)

// Limits bound the reading of a file.
type Limits struct {
	Pages    int   // pages
	Unpacked int64 // bytes after decompression, of all streams together
}

// Document is the text of a file.
type Document struct {
	Title string // the title in the file's properties; empty if it has none
	Pages []Page // in order
}

// Page is the text of a page.
type Page struct {
	Label   string  // the number that readers show: "iv", "12"
	Blocks  []Block // in reading order
	Images  bool    // whether the page shows images
	Unknown int     // characters that no font of the page maps to Unicode
	Known   int     // the other characters
}

// Block is a paragraph, or a table.
type Block struct {
	Text string     // the text of a paragraph
	Size float64    // the size of most of its letters, in points
	Bold bool       // whether most of its letters are bold
	Rows [][]string // the cells of a table; otherwise nil
}

// Read reads the text of a file. password opens a file that needs one. The error is one of this package, or the cause of the
// context.
func Read(ctx context.Context, data []byte, password string, limits Limits) (*Document, error) {
	f, err := open(ctx, data, password, limits)
	if err != nil {
		return nil, err
	}
	nodes, err := f.pages(limits.Pages)
	if err != nil {
		return nil, err
	}
	doc := &Document{Title: decodeText(f.resolve(f.dict(f.trailer["Info"])["Title"]))}
	if doc.Title == "untitled" || doc.Title == "(anonymous)" { // what ReportLab writes without a title
		doc.Title = ""
	}
	labels := f.labels(len(nodes))
	fonts := map[ref]*font{}
	for i, node := range nodes {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		page, err := f.page(node, fonts)
		if err != nil {
			return nil, err
		}
		page.Label = labels[i]
		doc.Pages = append(doc.Pages, *page)
		if i%64 == 63 {
			f.cache = map[int]object{} // objects of earlier pages
		}
	}
	if f.rebuilt && doc.empty() {
		return nil, ErrDamaged // the part with the text is missing
	}
	return doc, nil
}

// empty reports whether no page has text or images.
func (d *Document) empty() bool {
	return !slices.ContainsFunc(d.Pages, func(p Page) bool { return p.Known+p.Unknown > 0 || p.Images })
}

// pageNode is a page with the attributes that it inherits.
type pageNode struct {
	contents    object
	resources   dict
	rotation    int
	annotations object
}

// pages returns the pages of the tree, in order.
func (f *file) pages(most int) ([]pageNode, error) {
	type entry struct {
		o         object
		resources object
		rotation  int
		depth     int
	}
	var found []pageNode
	seen := map[ref]bool{}
	stack := []entry{{o: f.catalog()["Pages"]}}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r, ok := e.o.(ref); ok {
			if seen[r] {
				continue
			}
			seen[r] = true
		}
		d, ok := f.resolve(e.o).(dict)
		if !ok || e.depth > maxDepth {
			continue
		}
		if d["Resources"] != nil {
			e.resources = d["Resources"]
		}
		e.rotation = f.integer(d["Rotate"], e.rotation)
		kids, isTree := f.resolve(d["Kids"]).(array)
		if isTree && d["Type"] != name("Page") {
			for i := len(kids) - 1; i >= 0; i-- {
				stack = append(stack, entry{kids[i], e.resources, e.rotation, e.depth + 1})
			}
			continue
		}
		if len(found) >= most {
			return nil, ErrPages
		}
		found = append(found, pageNode{contents: d["Contents"], resources: f.dict(e.resources), rotation: e.rotation, annotations: d["Annots"]})
	}
	if len(found) == 0 {
		return nil, ErrDamaged
	}
	return found, nil
}

// decodeText decodes a string of the document's properties: UTF-16, UTF-8 or PDFDocEncoding.
func decodeText(o object) string {
	s, _ := o.(text)
	b := string(s)
	switch {
	case strings.HasPrefix(b, "\xfe\xff"):
		return decodeUTF16(b[2:])
	case strings.HasPrefix(b, "\xef\xbb\xbf"):
		return strings.ToValidUTF8(b[3:], "\uFFFD")
	}
	var out strings.Builder
	for _, c := range []byte(b) {
		out.WriteString(winAnsi(c))
	}
	return strings.TrimSpace(out.String())
}

// decodeUTF16 decodes big-endian UTF-16.
func decodeUTF16(b string) string {
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return string(utf16.Decode(units))
}
